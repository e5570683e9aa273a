#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "net/address/socket_address.h"

namespace muster::net {

/// Whose shares a connection counts for: an IPv4 address, the /64 of an IPv6 address, or the user
/// at the other end of a Unix socket. An IPv4 address in IPv6 is that IPv4 address.
struct UnitId {
  enum class Kind : std::uint8_t { none, ipv4, ipv6, user };

  Kind kind = Kind::none;
  std::uint64_t number = 0;  ///< the address, as it is on the wire, or the user

  friend bool operator==(const UnitId&, const UnitId&) = default;
};

/// fd    a connected socket; -1: its user is not known, and all Unix sockets are one unit
/// peer  who is at its other end
UnitId unit_of(int fd, const SocketAddress& peer);

/// "10.0.0.7", "2001:db8:1:2::/64", or "uid 1000".
std::string to_string(const UnitId& unit);

}  // namespace muster::net
