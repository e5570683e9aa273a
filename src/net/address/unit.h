#pragma once

#include <string>

#include "net/address/socket_address.h"

namespace muster::net {

/// Whose shares a connection counts for: "10.0.0.7", "2001:db8:1:2::/64", or "uid 1000" of a Unix
/// socket. An IPv4 address in IPv6 is that IPv4 address.
///
/// fd    a connected socket; -1: its user is not known, and all Unix sockets are one unit
/// peer  who is at its other end
std::string unit_of(int fd, const SocketAddress& peer);

}  // namespace muster::net
