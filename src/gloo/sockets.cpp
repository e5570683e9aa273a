#include "gloo/sockets.h"

#include <dirent.h>
#include <netinet/in.h>

#include <cstdlib>
#include <cstring>
#include <memory>

namespace muster::gloo_internal {
namespace {

template <class Part>
std::string bytes_of(const Part& part) {
  return {reinterpret_cast<const char*>(&part), sizeof part};
}

using Ask = int (*)(int socket, sockaddr* address, socklen_t* size);

/// The address that `ask` gives for a descriptor; empty if it is not a socket.
std::string address_said_by(Ask ask, int descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (ask(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return address_bytes_of(address);
}

}  // namespace

std::string address_bytes_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof v4);
    return bytes_of(v4.sin_addr) + bytes_of(v4.sin_port);
  }
  if (address.ss_family != AF_INET6) return {};
  sockaddr_in6 v6;
  std::memcpy(&v6, &address, sizeof v6);
  return bytes_of(v6.sin6_addr) + bytes_of(v6.sin6_port);
}

std::vector<int> find_sockets(const std::set<std::string>& own,
                              const std::set<std::string>& theirs) {
  std::vector<int> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), ::closedir);
  if (!folder) return found;
  while (const dirent* const entry = ::readdir(folder.get())) {
    char* end = nullptr;
    const long number = std::strtol(entry->d_name, &end, 10);
    if (end == entry->d_name || *end != '\0') continue;
    const int descriptor = static_cast<int>(number);
    if (own.count(address_said_by(::getsockname, descriptor)) != 0 ||
        theirs.count(address_said_by(::getpeername, descriptor)) != 0) {
      found.push_back(descriptor);
    }
  }
  return found;
}

}  // namespace muster::gloo_internal
