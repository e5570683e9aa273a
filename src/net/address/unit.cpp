#include "net/address/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace muster::net {
namespace {

constexpr std::size_t network_bytes = 8;  // of an IPv6 address: who has one has all of them
constexpr std::size_t mapped_bytes = 12;  // of an IPv6 address that is an IPv4 one
constexpr std::uint32_t unknown_user = SystemUser().uid;

UnitId unit_of_bytes(UnitId::Kind kind, const void* bytes, std::size_t count) {
  UnitId unit;
  unit.kind = kind;
  std::memcpy(&unit.number, bytes, count);
  return unit;
}

std::string address_text(int family, const void* bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(family, bytes, text, sizeof(text));
  return text;
}

}  // namespace

SystemUser user_of(int fd) {
  ucred user{};
  socklen_t size = sizeof(user);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &size) != 0) return {};
  return {user.uid, user.gid};
}

bool is_own_user(const UnitId& unit) {
  return unit.kind == UnitId::Kind::user && (unit.number == ::geteuid() || unit.number == 0);
}

UnitId unit_of(int fd, const SocketAddress& peer) {
  using Kind = UnitId::Kind;
  if (peer.is_unix()) return {Kind::user, user_of(fd).uid};
  if (peer.family() == AF_INET) {
    sockaddr_in whole{};
    std::memcpy(&whole, peer.data(), std::min<std::size_t>(sizeof(whole), peer.size()));
    return unit_of_bytes(Kind::ipv4, &whole.sin_addr, sizeof(whole.sin_addr));
  }
  if (peer.family() != AF_INET6) return {};
  sockaddr_in6 whole{};
  std::memcpy(&whole, peer.data(), std::min<std::size_t>(sizeof(whole), peer.size()));
  const std::uint8_t* const bytes = whole.sin6_addr.s6_addr;
  if (!IN6_IS_ADDR_V4MAPPED(&whole.sin6_addr)) {
    return unit_of_bytes(Kind::ipv6, bytes, network_bytes);
  }
  return unit_of_bytes(Kind::ipv4, bytes + mapped_bytes, sizeof(in_addr));
}

std::string to_string(const UnitId& unit) {
  switch (unit.kind) {
    case UnitId::Kind::ipv4: return address_text(AF_INET, &unit.number);
    case UnitId::Kind::ipv6: {
      in6_addr address{};
      std::memcpy(&address, &unit.number, network_bytes);
      return address_text(AF_INET6, &address) + "/64";
    }
    case UnitId::Kind::user:
      return "uid " + (unit.number == unknown_user ? "unknown" : std::to_string(unit.number));
    case UnitId::Kind::identity: return "identity " + std::to_string(unit.number);
    case UnitId::Kind::port: return "port " + std::to_string(unit.number);
    case UnitId::Kind::none: break;
  }
  return "unknown";
}

}  // namespace muster::net
