#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

namespace muster::test {

/// A listening socket that is not Muster: it answers each connection with `greeting`.
class Stranger {
 public:
  explicit Stranger(std::string greeting) : greeting_(std::move(greeting)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof own;
    auto* generic = reinterpret_cast<sockaddr*>(&own);
    REQUIRE(::bind(listener_, generic, size) == 0);
    REQUIRE(::listen(listener_, 16) == 0);
    REQUIRE(::getsockname(listener_, generic, &size) == 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(own.sin_port));
    thread_ = std::thread([this] { serve(); });
  }
  ~Stranger() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  const std::string& address() const { return address_; }

 private:
  void serve() {
    std::vector<int> open;
    for (int fd; (fd = ::accept(listener_, nullptr, nullptr)) >= 0;) {
      ::send(fd, greeting_.data(), greeting_.size(), MSG_NOSIGNAL);
      open.push_back(fd);
    }
    for (const int fd : open) ::close(fd);
  }

  std::string greeting_;
  int listener_ = -1;
  std::string address_;
  std::thread thread_;
};

}  // namespace muster::test
