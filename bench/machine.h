#pragma once

#include "run.h"

namespace muster::bench {

/// What a reader has to know of the machine and the programs to make use of the figures.
Json describe_machine();

}  // namespace muster::bench
