#pragma once

#include "launch/variables.h"

namespace musterrun {

/// How many CUDA devices a process that is started from here sees.
///
/// environment  CUDA_VISIBLE_DEVICES, if it is set, says which: those up to the first entry that is
///              none. Else libcuda is asked
/// returns      0 where there is no device, or no driver
int gpu_count(const muster::launch::Variables& environment);

/// On how many processors this process may run; 1 or more.
int cpu_count();

}  // namespace musterrun
