#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster::net {

/// A socket's address as the kernel has it: IPv4, IPv6 or a Unix socket's path.
class SocketAddress {
 public:
  SocketAddress() = default;
  SocketAddress(const sockaddr* address, socklen_t size);

  /// Of a path, or of an abstract name behind '@'.
  static SocketAddress unix_path(std::string_view path);
  /// Of this side, or of the other side, of a socket; empty when it has none.
  static SocketAddress local_of(int fd);
  static SocketAddress peer_of(int fd);

  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return size_; }
  int family() const { return size_ == 0 ? AF_UNSPEC : storage_.ss_family; }

  bool is_unix() const { return family() == AF_UNIX; }
  /// Only reachable from this machine: loopback, also as an IPv4 address in IPv6, and Unix.
  bool is_local_only() const;
  std::uint16_t port() const;
  void set_port(std::uint16_t port);
  /// The host alone, without the port.
  std::string host() const;

  friend bool operator==(const SocketAddress& a, const SocketAddress& b);

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

/// An address of TCP in a fifth of the memory.
class InternetAddress {
 public:
  /// Of another family: there is none.
  explicit InternetAddress(const SocketAddress& address);

  bool is_there() const { return size_ != 0; }
  SocketAddress address() const;

 private:
  std::array<char, 28> bytes_;  ///< a sockaddr_in or a sockaddr_in6
  std::uint8_t size_ = 0;
};

/// "10.0.0.7:29500", "[::1]:29500", "unix:/path" or "unix:@name".
std::string to_string(const SocketAddress& address);

}  // namespace muster::net
