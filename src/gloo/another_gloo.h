#pragma once

#include <optional>
#include <string>

namespace muster::gloo_internal {

/// The path of an object of this process, other than Debian's library, that has Gloo's functions
/// for others to use: two of them in one process would call each other's.
std::optional<std::string> another_gloo();

}  // namespace muster::gloo_internal
