#pragma once

#include <string>
#include <vector>

namespace musterrun {

/// GPUs that a CUDA program started here would see: as the CUDA driver says in a process of its
/// own, so that this one holds nothing of a GPU; without a driver, as CUDA_VISIBLE_DEVICES lists
/// them.
int count_gpus();

/// Processors that this process may use.
int count_processors();

}  // namespace musterrun
