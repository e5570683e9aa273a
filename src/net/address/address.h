#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster::net {

/// Where a server is, as people write it: "host:port", "[ipv6]:port", "unix:/path", or
/// "unix:@name" for a name without a file (Linux calls it abstract).
struct Address {
  std::string host;  ///< empty: every address of this machine (listening only)
  std::uint16_t port = 0;
  std::string unix_path;  ///< not empty: a Unix socket, host and port mean nothing

  bool is_unix() const { return !unix_path.empty(); }
};

/// errors  invalid_argument
Result<Address> parse_address(std::string_view text);

std::string to_string(const Address& address);

}  // namespace muster::net
