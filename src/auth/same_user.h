#pragma once

#include <cstdint>
#include <string>

namespace muster::auth {

/// A credentials file for a server at a Unix socket that is one user's: his processes have all
/// rights, and so have root's, who can do all on this host anyway.
std::string credentials_of_user(std::uint32_t uid);

}  // namespace muster::auth
