#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace muster::test {

/// Whether this machine can serve on [::1]; some containers have no IPv6.
inline bool has_ipv6() {
  const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  const bool is_bound =
      ::bind(fd, reinterpret_cast<const sockaddr*>(&loopback), sizeof(loopback)) == 0;
  ::close(fd);
  return is_bound;
}

}  // namespace muster::test
