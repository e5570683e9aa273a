#pragma once

#include "run.h"

namespace muster::bench {

/// What a reader has to know of the machine to make use of the figures.
Json describe_machine();
/// What the programs say when they are asked for their versions.
Json describe_programs(const Programs& programs);

}  // namespace muster::bench
