#include "nccl/bootstrap_socket.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace muster::nccl {
namespace {

constexpr std::size_t address_begin = 8;

template <class Address>
bool has_zeros_behind(const NcclUniqueId& id) {
  return std::all_of(id.begin() + address_begin + sizeof(Address), id.end(),
                     [](char byte) { return byte == 0; });
}

template <class Address>
Address address_in(const NcclUniqueId& id) {
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
bool listens_at(int socket, sa_family_t family, const NcclUniqueId& id) {
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

/// The only descriptor of this process that fits; -1 when none does, or several.
template <class Fits>
int only_descriptor(const Fits& fits) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), ::closedir);
  if (!folder) return -1;
  int found = -1;
  while (const dirent* const entry = ::readdir(folder.get())) {
    char* end = nullptr;
    const long descriptor = std::strtol(entry->d_name, &end, 10);
    if (end == entry->d_name || *end != '\0' || !fits(static_cast<int>(descriptor))) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(descriptor);
  }
  return found;
}

template <class Address>
int socket_of(const NcclUniqueId& id, sa_family_t family) {
  if (!has_zeros_behind<Address>(id)) return -1;
  return only_descriptor([&](int socket) { return listens_at<Address>(socket, family, id); });
}

}  // namespace

BootstrapSocket::BootstrapSocket(const NcclUniqueId& id) {
  sa_family_t family = 0;
  std::memcpy(&family, id.data() + address_begin, sizeof family);
  if (family == AF_INET) socket_ = socket_of<sockaddr_in>(id, family);
  if (family == AF_INET6) socket_ = socket_of<sockaddr_in6>(id, family);
}

void BootstrapSocket::close_on_exec() const {
  if (is_found()) ::fcntl(socket_, F_SETFD, FD_CLOEXEC);
}

void BootstrapSocket::give_up() const {
  if (is_found()) ::shutdown(socket_, SHUT_RDWR);
}

}  // namespace muster::nccl
