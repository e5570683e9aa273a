#pragma once

#include <string>

#include "launch/variables.h"
#include "option.h"

namespace musterrun {

/// Understands everything together: what follows from defaults and from the variables that composer
/// and torchrun read, and whether it fits. Afterwards `asked.options` is complete.
///
/// returns  what is wrong; empty: nothing
std::string conclude(Asked& asked, const muster::launch::Variables& environment);

}  // namespace musterrun
