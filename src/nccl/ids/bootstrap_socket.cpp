#include "nccl/ids/bootstrap_socket.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace muster::nccl_internal {
namespace {

constexpr std::size_t address_begin = 8;

template <class Address>
bool has_zeros_behind(const nccl::UniqueId& id) {
  return std::all_of(id.begin() + address_begin + sizeof(Address), id.end(),
                     [](char byte) { return byte == 0; });
}

template <class Address>
Address address_in(const nccl::UniqueId& id) {
  Address address;
  std::memcpy(&address, id.data() + address_begin, sizeof address);
  return address;
}

bool is_same(const sockaddr_in& a, const sockaddr_in& b) {
  return a.sin_port == b.sin_port && a.sin_addr.s_addr == b.sin_addr.s_addr;
}

bool is_same(const sockaddr_in6& a, const sockaddr_in6& b) {
  return a.sin6_port == b.sin6_port &&
         std::memcmp(&a.sin6_addr, &b.sin6_addr, sizeof a.sin6_addr) == 0;
}

/// Whether `socket` listens at the address that the id has at its place for one.
template <class Address>
bool listens_at(int socket, sa_family_t family, const nccl::UniqueId& id) {
  int is_listening = 0;
  socklen_t size = sizeof is_listening;
  if (::getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) != 0) return false;
  if (is_listening == 0) return false;
  sockaddr_storage own{};
  size = sizeof own;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) != 0) return false;
  if (own.ss_family != family || size < sizeof(Address)) return false;
  Address address;
  std::memcpy(&address, &own, sizeof address);
  return is_same(address, address_in<Address>(id));
}

/// The only descriptor of this process that fits; none when none does, or several.
template <class Fits>
std::optional<int> only_descriptor(const Fits& fits) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), ::closedir);
  if (!folder) return std::nullopt;
  std::optional<int> found;
  while (const dirent* const entry = ::readdir(folder.get())) {
    char* end = nullptr;
    const long descriptor = std::strtol(entry->d_name, &end, 10);
    if (end == entry->d_name || *end != '\0' || !fits(static_cast<int>(descriptor))) continue;
    if (found) return std::nullopt;
    found = static_cast<int>(descriptor);
  }
  return found;
}

template <class Address>
std::optional<int> socket_of(const nccl::UniqueId& id, sa_family_t family) {
  if (!has_zeros_behind<Address>(id)) return std::nullopt;
  return only_descriptor([&](int socket) { return listens_at<Address>(socket, family, id); });
}

}  // namespace

std::optional<int> find_bootstrap_socket(const nccl::UniqueId& id) {
  sa_family_t family = 0;
  std::memcpy(&family, id.data() + address_begin, sizeof family);
  if (family == AF_INET) return socket_of<sockaddr_in>(id, family);
  if (family == AF_INET6) return socket_of<sockaddr_in6>(id, family);
  return std::nullopt;
}

void set_close_on_exec(const nccl::UniqueId& id) {
  if (const auto socket = find_bootstrap_socket(id)) ::fcntl(*socket, F_SETFD, FD_CLOEXEC);
}

}  // namespace muster::nccl_internal

MUSTER_BEGIN_NAMESPACE

/// NCCL's thread sees that nobody can come any more, ends and closes the socket.
bool nccl::give_up(const nccl::UniqueId& id) {
  const auto socket = nccl_internal::find_bootstrap_socket(id);
  return socket && ::shutdown(*socket, SHUT_RDWR) == 0;
}

MUSTER_END_NAMESPACE
