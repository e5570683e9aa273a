#include "swarm.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace muster::bench {
namespace {

constexpr std::size_t receive_bytes = 256 * 1024;
constexpr int events_max = 256;
constexpr int patience_ms = 60'000;

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

std::string error_of(int socket) {
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  return std::strerror(error);
}

}  // namespace

double own_processor_us() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

double microseconds_since(Clock::time_point began) {
  return std::chrono::duration<double, std::micro>(Clock::now() - began).count();
}

Swarm::Swarm(const Subject& subject)
    : subject_(subject), epoll_(::epoll_create1(EPOLL_CLOEXEC)), buffer_(receive_bytes) {}

Swarm::~Swarm() {
  for (Peer& peer : peers_) {
    if (peer.fd < 0) continue;
    std::string goodbye;
    peer.dialect->append_goodbye(goodbye);
    if (peer.tls && peer.tls->is_open()) {
      peer.tls->seal(goodbye);
      goodbye = peer.tls->out;
    }
    if (!goodbye.empty()) {
      ::send(peer.fd, goodbye.data(), goodbye.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    ::close(peer.fd);
  }
  ::close(epoll_);
}

void Swarm::open(Peer& peer) {
  peer.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (peer.fd < 0) fail("socket");
  const int on = 1;
  ::setsockopt(peer.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(subject_.port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  if (::connect(peer.fd, raw, sizeof(address)) != 0 && errno != EINPROGRESS) fail("connect");
}

void Swarm::watch(int peer, std::uint32_t events, int how) const {
  epoll_event event{};
  event.events = events;
  event.data.u32 = static_cast<std::uint32_t>(peer);
  if (::epoll_ctl(epoll_, how, peers_[index(peer)].fd, &event) != 0) fail("epoll_ctl");
}

template <class OnEvent>
void Swarm::wait(OnEvent&& on_event) {
  epoll_event events[events_max];
  const int count = ::epoll_wait(epoll_, events, events_max, patience_ms);
  if (count == 0) throw std::runtime_error(subject_.name() + " does not answer");
  for (int i = 0; i < count; ++i) {
    on_event(static_cast<int>(events[i].data.u32), events[i].events);
  }
}

/// Whether it is done, or nothing is to be done.
bool Swarm::shake_hands(int peer, std::uint32_t events) {
  Peer& self = peers_[index(peer)];
  if (!subject_.tls()) return true;
  if (!self.tls) {
    self.tls = std::make_unique<Sealed>(subject_.tls());
    watch(peer, EPOLLIN, EPOLL_CTL_MOD);
  } else if ((events & EPOLLIN) != 0) {
    receive_some(self);
  }
  if (!self.tls->is_open()) flush(peer);  // else its last bytes go with the greeting
  return self.tls->is_open();
}

void Swarm::greet(int peer, Greeting greeting) {
  Peer& self = peers_[index(peer)];
  self.out = self.dialect->greeting();
  if (self.dialect->greeting_reply_bytes() == 0 && greeting == Greeting::answered) {
    if (!self.dialect->append_add(self.out, "greetings")) {
      self.dialect->append_get(self.out, "greetings", 0);
    }
  }
  watch(peer, EPOLLIN, EPOLL_CTL_MOD);
  if (!self.out.empty()) flush(peer);
}

std::vector<double> Swarm::connect(int count, int at_once, Greeting greeting) {
  const int first = size();
  for (int i = 0; i < count; ++i) peers_.emplace_back().dialect = make_dialect(subject_.kind());
  return make_connections(first, at_once, greeting);
}

std::vector<double> Swarm::reconnect(int at_once) {
  for (Peer& peer : peers_) {
    ::close(std::exchange(peer.fd, -1));
    peer.tls.reset();
    peer.out.clear();
    peer.waits_to_write = false;
    peer.dialect->begin_again();
  }
  return make_connections(0, at_once, Greeting::minimal);
}

/// Of all peers from this one on.
std::vector<double> Swarm::make_connections(int first, int at_once, Greeting greeting) {
  const int last = size();
  const int count = last - first;
  std::vector<double> took_us;
  std::vector<Clock::time_point> began(index(count));
  std::vector<std::size_t> greeting_bytes_left(index(count));
  std::vector<bool> is_greeted(index(count), false);
  int opened = first;
  int done = 0;
  const auto finish = [&](int peer) {
    took_us.push_back(microseconds_since(began[index(peer - first)]));
    ++done;
  };
  const auto on_event = [&](int peer, std::uint32_t events) {
    if (peer < first) return read(peer, {});
    Peer& self = peers_[index(peer)];
    const std::size_t at = index(peer - first);
    if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
      throw std::runtime_error(subject_.name() + ": connection " + std::to_string(at + 1) + " of " +
                               std::to_string(count) + " ended: " + error_of(self.fd));
    }
    if (!is_greeted[at]) {
      if (!shake_hands(peer, events)) return;
      is_greeted[at] = true;
      greet(peer, greeting);
      if (self.out.empty() && greeting_bytes_left[at] == 0 && greeting == Greeting::minimal) {
        finish(peer);
      }
      return;
    }
    if ((events & EPOLLOUT) != 0) flush(peer);
    if ((events & EPOLLIN) == 0) return;
    if (greeting_bytes_left[at] == 0) return read(peer, [&](int, std::size_t) { finish(peer); });
    const std::string_view came = receive_some(self);
    if (came.size() > greeting_bytes_left[at]) throw std::runtime_error("more than a greeting");
    self.dialect->greeted(came);
    greeting_bytes_left[at] -= came.size();
    if (greeting_bytes_left[at] == 0) finish(peer);
  };
  while (done < count) {
    for (; opened < last && opened - first - done < at_once; ++opened) {
      Peer& peer = peers_[index(opened)];
      began[index(opened - first)] = Clock::now();
      greeting_bytes_left[index(opened - first)] = peer.dialect->greeting_reply_bytes();
      open(peer);
      watch(opened, EPOLLOUT, EPOLL_CTL_ADD);
    }
    wait(on_event);
  }
  return took_us;
}

void Swarm::flush(int peer) {
  Peer& self = peers_[index(peer)];
  if (self.tls && self.tls->is_open()) self.tls->seal(self.out);
  std::string& out = self.tls ? self.tls->out : self.out;
  const ssize_t count = ::send(self.fd, out.data(), out.size(), MSG_NOSIGNAL);
  if (count < 0 && errno != EAGAIN) fail("sending to " + subject_.name());
  if (count == static_cast<ssize_t>(out.size())) {
    out.clear();
  } else if (count > 0) {
    out.erase(0, static_cast<std::size_t>(count));
  }
  if (self.waits_to_write == !out.empty()) return;
  self.waits_to_write = !out.empty();
  watch(peer, self.waits_to_write ? EPOLLIN | EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
}

void Swarm::flush_all() {
  for (int peer = 0; peer < size(); ++peer) {
    if (!peers_[index(peer)].out.empty()) flush(peer);
  }
}

/// In clear; empty: nothing is there yet.
std::string_view Swarm::receive_some(Peer& peer) {
  const ssize_t count = ::recv(peer.fd, buffer_.data(), buffer_.size(), 0);
  if (count < 0 && errno == EAGAIN) return {};
  if (count < 0) fail("receiving from " + subject_.name());
  if (count == 0) throw std::runtime_error(subject_.name() + " has closed a connection");
  bytes_received_ += static_cast<std::uint64_t>(count);
  const std::string_view came(buffer_.data(), static_cast<std::size_t>(count));
  if (!peer.tls) return came;
  clear_.clear();
  peer.tls->take(came, clear_);
  return clear_;
}

void Swarm::read(int peer, const OnReplies& on_replies) {
  Peer& self = peers_[index(peer)];
  const std::size_t replies = self.dialect->take(receive_some(self));
  if (replies > 0 && on_replies) on_replies(peer, replies);
  if (!self.out.empty() && !self.waits_to_write) flush(peer);
}

void Swarm::receive_until(const std::function<bool()>& is_enough, const OnReplies& on_replies) {
  while (!is_enough()) {
    wait([&](int peer, std::uint32_t events) {
      if ((events & EPOLLOUT) != 0) flush(peer);
      if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) read(peer, on_replies);
    });
  }
}

void Swarm::receive(std::size_t replies, const OnReplies& on_replies) {
  std::size_t have = 0;
  receive_until([&] { return have >= replies; },
                [&](int peer, std::size_t count) {
                  have += count;
                  if (on_replies) on_replies(peer, count);
                });
}

void Swarm::call(int peer, std::size_t replies) {
  std::size_t have = 0;
  flush(peer);
  receive_until([&] { return have >= replies; },
                [&](int from, std::size_t count) { have += from == peer ? count : 0; });
}

}  // namespace muster::bench
