#pragma once

#include <optional>
#include <string>

#include "commands.h"

namespace musterctl {

/// Puts the standard input in the place of a value that is "-". The timeout begins anew then: the
/// input took its time.
///
/// returns  what to say if it cannot be read; none: `value` is what was meant
std::optional<Answer> read_if_dash(std::string& value, Run& run);

}  // namespace musterctl
