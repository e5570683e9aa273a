#pragma once

#include <optional>

#include "auth/key.h"

namespace tools {

/// A key that nobody else has; nothing: the system gives no random numbers.
std::optional<muster::auth::Key> fresh_key();

}  // namespace tools
