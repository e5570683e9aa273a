// One thread polls the listener and both ends of every connection. Each direction of a
// connection is a Pump: it passes what it reads, skips the hello and counts frame headers.

#include "support/frame_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <vector>

#include "support/machine.h"
#include "wire/frame.h"
#include "wire/hello.h"

namespace muster::test {

struct FrameProxy::Pump {
  int from = -1;
  int to = -1;
  bool upwards = false;
  std::size_t skip = 0;  // bytes of the hello, or of a frame's body, that are still to come
  std::string header;    // of a frame that is not whole yet

  void count(std::string_view bytes, std::array<std::uint64_t, 16>& counts);
};

void FrameProxy::Pump::count(std::string_view bytes, std::array<std::uint64_t, 16>& counts) {
  while (!bytes.empty()) {
    const std::size_t skipped = std::min(skip, bytes.size());
    bytes.remove_prefix(skipped);
    skip -= skipped;
    if (bytes.empty()) return;
    const std::size_t wanted = wire::frame_header_bytes - header.size();
    header.append(bytes.substr(0, wanted));
    bytes.remove_prefix(std::min(wanted, bytes.size()));
    if (header.size() < wire::frame_header_bytes) return;
    std::uint32_t body_bytes = 0;
    std::memcpy(&body_bytes, header.data(), sizeof body_bytes);
    ++counts[static_cast<unsigned char>(header[4]) % counts.size()];
    skip = body_bytes;
    header.clear();
  }
}

namespace {

void without_delay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool send_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(fd, data, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    data += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

}  // namespace

FrameProxy::FrameProxy(const std::string& server) {
  server_port_ = static_cast<std::uint16_t>(std::stoul(server.substr(server.rfind(':') + 1)));
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in own = loopback(0);
  socklen_t size = sizeof own;
  auto* generic = reinterpret_cast<sockaddr*>(&own);
  if (::bind(listener_, generic, size) != 0 || ::listen(listener_, 1024) != 0 ||
      ::getsockname(listener_, generic, &size) != 0 || ::pipe(stop_pipe_) != 0) {
    throw std::runtime_error("the proxy cannot listen");
  }
  address_ = "127.0.0.1:" + std::to_string(ntohs(own.sin_port));
  thread_ = std::thread([this] { run(); });
}

FrameProxy::~FrameProxy() {
  ::close(stop_pipe_[1]);
  thread_.join();
  ::close(stop_pipe_[0]);
  ::close(listener_);
}

FrameCounts FrameProxy::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void FrameProxy::accept_one(std::map<int, Pump>& pumps) {
  const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(server_port_);
  if (::connect(server, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    ::close(server);
    ::close(client);
    return;
  }
  without_delay(client);
  without_delay(server);
  pumps[client] = {client, server, true, wire::client_hello_bytes, {}};
  pumps[server] = {server, client, false, wire::server_hello_bytes, {}};
}

bool FrameProxy::pass(Pump& pump) {
  char buffer[65536];
  const ssize_t got = ::recv(pump.from, buffer, sizeof buffer, 0);
  if (got <= 0) return false;
  const auto size = static_cast<std::size_t>(got);
  {
    const std::lock_guard lock(mutex_);
    pump.count({buffer, size}, pump.upwards ? counts_.up : counts_.down);
  }
  return send_all(pump.to, buffer, size);
}

void FrameProxy::count_connections(const std::map<int, Pump>& pumps) {
  std::size_t connections = 0;
  std::size_t ended = 0;
  for (const auto& [fd, pump] : pumps) {
    if (!pump.upwards) continue;
    pollfd look{fd, POLLRDHUP, 0};
    ++connections;
    ended += ::poll(&look, 1, 0) > 0 ? 1 : 0;
  }
  ended_count_ = ended;
  connections_count_ = connections;
}

void FrameProxy::run() {
  std::map<int, Pump> pumps;
  const auto close_pair = [&](int fd) {
    const int other = pumps.at(fd).to;
    for (const int end : {fd, other}) {
      ::close(end);
      pumps.erase(end);
    }
  };
  // After the stop it still passes on bytes that have arrived: goodbyes of closed clients.
  for (bool stopped = false, passed = true; !stopped || passed;) {
    passed = false;
    if (cut_.exchange(false)) {
      while (!pumps.empty()) close_pair(pumps.begin()->first);
    }
    std::vector<pollfd> ready = {{stop_pipe_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
    if (!paused_) {
      for (const auto& [fd, pump] : pumps) ready.push_back({fd, POLLIN, 0});
    }
    ::poll(ready.data(), ready.size(), stopped ? 0 : 5);
    stopped = ready[0].revents != 0;
    count_connections(pumps);
    if (ready[1].revents != 0) accept_one(pumps);
    for (std::size_t i = 2; i < ready.size(); ++i) {
      if (ready[i].revents == 0 || pumps.count(ready[i].fd) == 0) continue;
      const std::lock_guard lock(passing_);
      if (paused_ || cut_) break;
      passed = true;
      if (!pass(pumps.at(ready[i].fd))) close_pair(ready[i].fd);
    }
  }
  while (!pumps.empty()) close_pair(pumps.begin()->first);
}

}  // namespace muster::test
