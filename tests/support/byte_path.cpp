#include "support/byte_path.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "support/machine.h"

namespace muster::test {
namespace {

const sockaddr* generic(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

}  // namespace

struct BytePath::Connection {
  int client = -1;
  int server = -1;  ///< -1: there is none
  std::size_t from_client = 0;
  std::size_t from_server = 0;
};

BytePath::BytePath(const std::string& server, Meddle meddle)
    : server_(server), meddle_(std::move(meddle)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in own = loopback(0);
  socklen_t size = sizeof own;
  if (::bind(listener_, generic(own), size) != 0 || ::listen(listener_, 128) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&own), &size) != 0 ||
      ::pipe(stop_pipe_) != 0) {
    throw std::runtime_error("no socket");
  }
  address_ = "127.0.0.1:" + std::to_string(ntohs(own.sin_port));
  thread_ = std::thread([this] { run(); });
}

BytePath::~BytePath() {
  ::close(stop_pipe_[1]);
  thread_.join();
  for (const Connection& connection : connections_) {
    ::close(connection.client);
    if (connection.server >= 0) ::close(connection.server);
  }
  ::close(stop_pipe_[0]);
  ::close(listener_);
}

void BytePath::accept_one() {
  Connection connection;
  connection.client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (connection.client < 0) return;
  const int on = 1;
  ::setsockopt(connection.client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (!server_.empty()) {
    const auto port = std::stoul(server_.substr(server_.rfind(':') + 1));
    const sockaddr_in server = loopback(static_cast<std::uint16_t>(port));
    connection.server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ::setsockopt(connection.server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(connection.server, generic(server), sizeof server) != 0) {
      ::close(connection.server);
      ::close(connection.client);
      return;
    }
  }
  ++connections_count_;
  connections_.push_back(connection);
}

bool BytePath::take(Connection& connection, From from) {
  char buffer[1 << 16];
  const int fd = from == From::client ? connection.client : connection.server;
  const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
  if (got <= 0) return false;
  const auto size = static_cast<std::size_t>(got);
  std::size_t& first = from == From::client ? connection.from_client : connection.from_server;
  const Passed passed = meddle_(from, {buffer, size}, first);
  first += size;
  if (connection.server >= 0) send_all(connection.server, passed.to_server);
  send_all(connection.client, passed.to_client);
  return !passed.ends;
}

void BytePath::run() {
  for (;;) {
    std::vector<pollfd> ready = {{stop_pipe_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const Connection& connection : connections_) {
      ready.push_back({connection.client, POLLIN, 0});
      ready.push_back({connection.server, POLLIN, 0});
    }
    ::poll(ready.data(), ready.size(), -1);
    if (ready[0].revents != 0) return;
    std::size_t index = 2;
    for (auto at = connections_.begin(); at != connections_.end(); index += 2) {
      bool goes_on = ready[index].revents == 0 || take(*at, From::client);
      if (goes_on && ready[index + 1].revents != 0) goes_on = take(*at, From::server);
      if (goes_on) {
        ++at;
        continue;
      }
      // What has not been read would make it a reset, which loses what was sent before.
      for (const int fd : {at->client, at->server}) {
        if (fd < 0) continue;
        ::shutdown(fd, SHUT_WR);
        char rest[1 << 16];
        while (::recv(fd, rest, sizeof rest, MSG_DONTWAIT) > 0) continue;
        ::close(fd);
      }
      at = connections_.erase(at);
    }
    if (ready[1].revents != 0) accept_one();
  }
}

}  // namespace muster::test
