#pragma once

#include <string>
#include <vector>

#include "launch/options.h"
#include "launch/variables.h"

namespace muster::launch {

/// What one rank is started with: the program, then its arguments.
///
/// environment  of the rank. PYTHON_EXEC is the Python that runs scripts and modules (where it is
///              not set or empty, that of the options); the other variables are put into the
///              arguments, but not into the program's name, if
///              `options.program.expands_arguments` is set
std::vector<std::string> command_of(const LaunchOptions& options, const Variables& environment);

}  // namespace muster::launch
