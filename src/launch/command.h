#pragma once

#include <string>
#include <vector>

#include "launch/options.h"
#include "launch/rank_environment.h"

namespace muster::launch {

/// The command line of a rank. What Python runs it runs with `-u`, by the program that
/// PYTHON_EXEC names, else `python3`; arguments are expanded by the rank's variables.
std::vector<std::string> command_of(const LaunchOptions& options, const Variables& variables);

}  // namespace muster::launch
