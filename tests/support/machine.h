#pragma once

#include <dirent.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

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

/// 127.0.0.1 with this port.
inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

inline std::size_t entries_of(const char* path) {
  std::size_t count = 0;
  DIR* const folder = ::opendir(path);
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}
inline std::size_t thread_count() { return entries_of("/proc/self/task"); }
inline std::size_t descriptor_count() { return entries_of("/proc/self/fd"); }

/// Allows this process as many descriptors as it may have, and returns how many these are.
inline std::size_t allow_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

}  // namespace muster::test
