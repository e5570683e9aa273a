#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::gloo_internal {

/// The path of an object of this process, other than Debian's library, that has Gloo's functions
/// for others to use: two of them in one process would call each other's.
std::optional<std::string> another_gloo();

/// Whether a path names Debian's library, or the copy of it that a wheel of Python brings, to whose
/// name auditwheel adds the beginning of its digest: libgloo-0123abcd.so.0.5.0.
bool is_own_gloo(std::string_view path);

}  // namespace muster::gloo_internal
