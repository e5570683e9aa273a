#include "net/address/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace muster::net {
namespace {

constexpr std::size_t network_bytes = 8;  // of an IPv6 address: who has one has all of them

std::string user_of(int fd) {
  ucred user{};
  socklen_t size = sizeof(user);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &size) != 0) return "uid unknown";
  return "uid " + std::to_string(user.uid);
}

std::string network_of(const SocketAddress& peer) {
  sockaddr_in6 whole{};
  std::memcpy(&whole, peer.data(), std::min<std::size_t>(sizeof(whole), peer.size()));
  if (IN6_IS_ADDR_V4MAPPED(&whole.sin6_addr)) return peer.host();
  std::fill(whole.sin6_addr.s6_addr + network_bytes, std::end(whole.sin6_addr.s6_addr),
            std::uint8_t{0});
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET6, &whole.sin6_addr, text, sizeof(text));
  return std::string(text) + "/64";
}

}  // namespace

std::string unit_of(int fd, const SocketAddress& peer) {
  if (peer.is_unix()) return user_of(fd);
  return peer.family() == AF_INET6 ? network_of(peer) : peer.host();
}

}  // namespace muster::net
