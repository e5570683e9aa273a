#include "net/address/socket_address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace muster::net {
namespace {

template <class Address>
Address as(const sockaddr* address) {
  Address copy{};
  std::memcpy(&copy, address, sizeof(copy));
  return copy;
}

std::string text_of(int family, const void* bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(family, bytes, text, sizeof(text));
  return text;
}

}  // namespace

SocketAddress::SocketAddress(const sockaddr* address, socklen_t size)
    : size_(std::min<socklen_t>(size, sizeof(storage_))) {
  std::memcpy(&storage_, address, size_);
}

SocketAddress SocketAddress::unix_path(std::string_view path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t bytes = std::min(path.size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path, path.data(), bytes);
  const bool is_abstract = address.sun_path[0] == '@';
  if (is_abstract) address.sun_path[0] = '\0';
  return {reinterpret_cast<const sockaddr*>(&address),
          static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + bytes + (is_abstract ? 0 : 1))};
}

SocketAddress SocketAddress::local_of(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return {};
  return {reinterpret_cast<const sockaddr*>(&storage), size};
}

SocketAddress SocketAddress::peer_of(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return {};
  return {reinterpret_cast<const sockaddr*>(&storage), size};
}

bool SocketAddress::is_local_only() const {
  if (family() == AF_UNIX) return true;
  if (family() == AF_INET) {
    return (ntohl(as<sockaddr_in>(data()).sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
  }
  if (family() != AF_INET6) return false;
  const in6_addr address = as<sockaddr_in6>(data()).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&address)) return address.s6_addr[12] == IN_LOOPBACKNET;
  return IN6_IS_ADDR_LOOPBACK(&address) != 0;
}

std::uint16_t SocketAddress::port() const {
  if (family() == AF_INET) return ntohs(as<sockaddr_in>(data()).sin_port);
  if (family() == AF_INET6) return ntohs(as<sockaddr_in6>(data()).sin6_port);
  return 0;
}

void SocketAddress::set_port(std::uint16_t port) {
  const std::uint16_t network_port = htons(port);
  auto* const bytes = reinterpret_cast<char*>(&storage_);
  if (family() == AF_INET) {
    std::memcpy(bytes + offsetof(sockaddr_in, sin_port), &network_port, sizeof(network_port));
  } else if (family() == AF_INET6) {
    std::memcpy(bytes + offsetof(sockaddr_in6, sin6_port), &network_port, sizeof(network_port));
  }
}

std::string SocketAddress::host() const {
  if (family() == AF_INET) {
    const in_addr address = as<sockaddr_in>(data()).sin_addr;
    return text_of(AF_INET, &address);
  }
  if (family() == AF_INET6) {
    const auto whole = as<sockaddr_in6>(data());
    if (IN6_IS_ADDR_V4MAPPED(&whole.sin6_addr))
      return text_of(AF_INET, whole.sin6_addr.s6_addr + 12);
    std::string text = text_of(AF_INET6, &whole.sin6_addr);
    char interface[IF_NAMESIZE] = "";
    if (IN6_IS_ADDR_LINKLOCAL(&whole.sin6_addr) &&
        ::if_indextoname(whole.sin6_scope_id, interface) != nullptr) {
      text += std::string("%") + interface;
    }
    return text;
  }
  if (family() == AF_UNIX) {
    const auto address = as<sockaddr_un>(data());
    const std::size_t bytes = size_ - std::min<std::size_t>(size_, offsetof(sockaddr_un, sun_path));
    const bool is_abstract = bytes > 1 && address.sun_path[0] == '\0';
    if (is_abstract) return "@" + std::string(address.sun_path + 1, bytes - 1);
    return {address.sun_path,
            ::strnlen(address.sun_path, std::min(bytes, sizeof(address.sun_path)))};
  }
  return {};
}

InternetAddress::InternetAddress(const SocketAddress& address) {
  static_assert(sizeof(sockaddr_in6) <= sizeof(bytes_));
  if (address.family() != AF_INET && address.family() != AF_INET6) return;
  size_ = static_cast<std::uint8_t>(std::min<std::size_t>(address.size(), sizeof(bytes_)));
  std::memcpy(bytes_.data(), address.data(), size_);
}

SocketAddress InternetAddress::address() const {
  sockaddr_storage storage{};
  std::memcpy(&storage, bytes_.data(), size_);
  return {reinterpret_cast<const sockaddr*>(&storage), size_};
}

bool operator==(const SocketAddress& a, const SocketAddress& b) {
  return a.size_ == b.size_ && std::memcmp(&a.storage_, &b.storage_, a.size_) == 0;
}

std::string to_string(const SocketAddress& address) {
  if (address.family() == AF_UNIX) return "unix:" + address.host();
  const std::string host = address.host();
  const bool bracketed = host.find(':') != std::string::npos;
  return (bracketed ? "[" + host + "]" : host) + ":" + std::to_string(address.port());
}

}  // namespace muster::net
