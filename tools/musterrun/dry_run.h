#pragma once

#include <string>

#include "launch/options.h"
#include "launch/variables.h"

namespace musterrun {

/// What would be run, as text: for each local rank a line with its command, as a shell reads it,
/// and one for each variable that it gets, sorted.
std::string dry_run(const muster::launch::LaunchOptions& options,
                    const muster::launch::Variables& environment);

}  // namespace musterrun
