#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "net/address/socket_address.h"

namespace muster::net {

/// Whose shares a connection counts for: an IPv4 address, the /64 of an IPv6 address, or the user
/// at the other end of a Unix socket; once it is known who has come, an identity; of a port that
/// has one unit for all who come there, that port. An IPv4 address in IPv6 is that IPv4 address.
struct UnitId {
  enum class Kind : std::uint8_t { none, ipv4, ipv6, user, identity, port };

  Kind kind = Kind::none;
  /// The address, as it is on the wire, the user, or a number of whoever knows the identities or
  /// the ports.
  std::uint64_t number = 0;

  friend bool operator==(const UnitId&, const UnitId&) = default;
};

/// Whose process has connected to a Unix socket.
struct SystemUser {
  std::uint32_t uid = ~std::uint32_t{0};  ///< nobody's
  std::uint32_t gid = ~std::uint32_t{0};
};

/// At the other end of a connected Unix socket; nobody, where the system does not say it.
SystemUser user_of(int fd);

/// fd    a connected socket; -1: its user is not known, and all Unix sockets are one unit
/// peer  who is at its other end
UnitId unit_of(int fd, const SocketAddress& peer);

/// Whether it is the user of this process, or root, at a Unix socket.
bool is_own_user(const UnitId& unit);

/// "10.0.0.7", "2001:db8:1:2::/64", or "uid 1000"; of an identity or a port its number.
std::string to_string(const UnitId& unit);

}  // namespace muster::net
