#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "wire/hello.h"

namespace muster::test {

/// Connections of one address that begin a hello and do not end it.
class HalfHellos {
 public:
  /// from   an address of 127.0.0.0/8
  /// port   of a server on 127.0.0.1
  HalfHellos(std::string from, std::uint16_t port, std::size_t count_max)
      : from_(std::move(from)), port_(port) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    wire::append_client_hello(hello_, {});
    sockets_.reserve(count_max);
  }
  ~HalfHellos() {
    for (const int socket : sockets_) ::close(socket);
  }
  HalfHellos(const HalfHellos&) = delete;
  HalfHellos& operator=(const HalfHellos&) = delete;

  /// Opens more of them, each with so many bytes of its hello.
  void open(std::size_t count, std::size_t bytes) {
    for (; count > 0; --count) {
      sockets_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const sockaddr_in own = address_of(from_, 0);
      const sockaddr_in server = address_of("127.0.0.1", port_);
      if (::bind(sockets_.back(), as_sockaddr(own), sizeof(own)) != 0 ||
          ::connect(sockets_.back(), as_sockaddr(server), sizeof(server)) != 0) {
        throw std::runtime_error("no connection from " + from_);
      }
      const std::string_view part = std::string_view(hello_).substr(0, bytes);
      if (::send(sockets_.back(), part.data(), part.size(), MSG_NOSIGNAL) < 0) {
        throw std::runtime_error("a half hello was not taken");
      }
    }
  }

  std::size_t count() const { return sockets_.size(); }

  /// How many of them the server has answered or closed.
  std::ptrdiff_t answered_count() const {
    return std::count_if(sockets_.begin(), sockets_.end(), [](int socket) {
      char byte = 0;
      return ::recv(socket, &byte, 1, MSG_DONTWAIT | MSG_PEEK) >= 0;
    });
  }

 private:
  static sockaddr_in address_of(const std::string& host, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
    return address;
  }
  static const sockaddr* as_sockaddr(const sockaddr_in& address) {
    return reinterpret_cast<const sockaddr*>(&address);
  }

  const std::string from_;
  const std::uint16_t port_;
  std::string hello_;
  std::vector<int> sockets_;
};

}  // namespace muster::test
