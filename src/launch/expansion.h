#pragma once

#include <string>
#include <string_view>

#include "launch/rank_environment.h"

namespace muster::launch {

/// Replaces `$NAME` and `${NAME}` by a rank's variables, and a `~` at the beginning, alone or
/// before a slash, by HOME. Names that are not set stay as they are.
std::string expanded(std::string_view text, const Variables& variables);

}  // namespace muster::launch
