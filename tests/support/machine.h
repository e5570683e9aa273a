#pragma once

#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>

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

inline std::size_t entries_of(const char* path) {
  std::size_t count = 0;
  DIR* const folder = ::opendir(path);
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}
inline std::size_t thread_count() { return entries_of("/proc/self/task"); }
inline std::size_t descriptor_count() { return entries_of("/proc/self/fd"); }

}  // namespace muster::test
