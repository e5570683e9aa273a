#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "muster/runtime.h"
#include "support/ranks.h"

// A job whose processes are threads: each has an environment and a Runtime of its own.

namespace muster::test {

/// What a launcher gives rank `rank` of one node.
inline Environment::Variables variables_of(int rank, int world_size, const std::string& store) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(world_size)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"LOCAL_WORLD_SIZE", std::to_string(world_size)},
          {"MUSTER_STORE", store}};
}

inline RuntimeOptions patient(Duration timeout = std::chrono::seconds(20)) {
  RuntimeOptions options;
  options.group.timeout = timeout;
  options.group.store.timeout = timeout;
  return options;
}

/// A free port of this machine, held by a socket that listens.
class TcpPort {
 public:
  TcpPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    REQUIRE(::bind(socket_, generic, size) == 0);
    REQUIRE(::listen(socket_, 16) == 0);
    REQUIRE(::getsockname(socket_, generic, &size) == 0);
    number_ = ntohs(address.sin_port);
  }
  ~TcpPort() { ::close(socket_); }
  TcpPort(const TcpPort&) = delete;
  TcpPort& operator=(const TcpPort&) = delete;

  int number() const { return number_; }
  int duplicate() const { return ::fcntl(socket_, F_DUPFD_CLOEXEC, 0); }

 private:
  const int socket_;
  int number_ = 0;
};

/// A server, and what runs there.
class Job {
 public:
  explicit Job(int world_size) : world_size_(world_size) {}

  const std::string& store() const { return server_.addresses().front(); }

  /// Runs `part` on each rank, initialized.
  void run(const std::function<void(Runtime& runtime)>& part, RuntimeOptions options = patient()) {
    run_ranks(world_size_, [&](int rank) {
      Runtime runtime(Environment(variables_of(rank, world_size_, store())));
      must(runtime.init(options));
      part(runtime);
    });
  }

 private:
  const int world_size_;
  Server server_ = start_server();
};

}  // namespace muster::test
