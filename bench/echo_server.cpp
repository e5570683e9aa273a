// The floor: a server on one thread and one level-triggered epoll set, which reads what is there,
// answers each frame with as many bytes as it asks for, and writes all answers at once. What a
// server of keys costs beyond this is its own work, not the kernel's.
//
//     echo_server        prints the port that it listens on, and serves until it is killed

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "echo_protocol.h"

namespace muster::bench {
namespace {

constexpr std::size_t receive_bytes = 64 * 1024;
constexpr int events_max = 256;

void require(bool is_good, const char* what) {
  if (is_good) return;
  std::perror(what);
  std::exit(1);
}

class EchoServer {
 public:
  EchoServer() : buffer_(receive_bytes) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof(address);
    require(::bind(listener_, raw, size) == 0, "bind");
    require(::listen(listener_, 65535) == 0, "listen");
    require(::getsockname(listener_, raw, &size) == 0, "getsockname");
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    watch(listener_, EPOLL_CTL_ADD, EPOLLIN);
    std::printf("%d\n", ntohs(address.sin_port));
    std::fflush(stdout);
  }

  [[noreturn]] void serve() {
    epoll_event events[events_max];
    for (;;) {
      const int count = ::epoll_wait(epoll_, events, events_max, -1);
      for (int i = 0; i < count; ++i) handle(events[i]);
    }
  }

 private:
  struct Peer {
    int fd = -1;
    std::string head;      ///< the part of one that has come
    std::size_t skip = 0;  ///< bytes of a body that are still to come
    EchoHead order;        ///< of that body
    std::string out;       ///< what the socket did not take
    bool waits_to_write = false;
  };

  void watch(int fd, int how, std::uint32_t events) const {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    ::epoll_ctl(epoll_, how, fd, &event);
  }

  void handle(const epoll_event& event) {
    if (event.data.fd == listener_) return accept_all();
    const auto found = peers_.find(event.data.fd);
    if (found == peers_.end()) return;
    Peer& peer = *found->second;
    if ((event.events & EPOLLOUT) != 0) write(peer);
    if ((event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read(peer);
  }

  void accept_all() {
    for (;;) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0) return;
      const int on = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      auto& peer = peers_[fd] = std::make_unique<Peer>();
      peer->fd = fd;
      watch(fd, EPOLL_CTL_ADD, EPOLLIN);
    }
  }

  void read(Peer& peer) {
    const ssize_t count = ::recv(peer.fd, buffer_.data(), buffer_.size(), 0);
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) return drop(peer.fd);
    bool releases = false;
    take(peer, buffer_.data(), static_cast<std::size_t>(count), releases);
    if (!peer.out.empty() && !peer.waits_to_write) write(peer);
    if (releases) release();
  }

  void take(Peer& peer, const char* bytes, std::size_t count, bool& releases) {
    while (count > 0) {
      if (peer.skip > 0) {
        const std::size_t skipped = peer.skip < count ? peer.skip : count;
        peer.skip -= skipped;
        bytes += skipped;
        count -= skipped;
      } else {
        const std::size_t wanted = sizeof(EchoHead) - peer.head.size();
        const std::size_t taken = wanted < count ? wanted : count;
        peer.head.append(bytes, taken);
        bytes += taken;
        count -= taken;
        if (peer.head.size() < sizeof(EchoHead)) return;
        std::memcpy(&peer.order, peer.head.data(), sizeof(EchoHead));
        peer.head.clear();
        peer.skip = peer.order.body_bytes;
      }
      if (peer.skip == 0) obey(peer, releases);
    }
  }

  void obey(Peer& peer, bool& releases) {
    if (peer.order.order == EchoOrder::park) {
      parked_.push_back(peer.fd);
      parked_reply_bytes_ = peer.order.reply_bytes;
      return;
    }
    if (peer.order.order == EchoOrder::meet) return meet(peer.fd, peer.order.reply_bytes);
    if (peer.order.order == EchoOrder::confirm) return confirm();
    releases = releases || peer.order.order == EchoOrder::release;
    append_answer(peer.out, peer.order.reply_bytes);
  }

  static void append_answer(std::string& out, std::uint32_t bytes) {
    const EchoHead head{bytes, 0, EchoOrder::answer};
    char raw[sizeof(EchoHead)];
    std::memcpy(raw, &head, sizeof(head));
    out.append(raw, sizeof(raw));
    out.append(bytes, 'x');
  }

  /// The least that waking many connections costs: one write for each.
  void release() {
    std::string answer;
    append_answer(answer, parked_reply_bytes_);
    for (const int fd : parked_) ::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
    parked_.clear();
  }

  /// The least that a barrier costs whose first rank leaves last.
  void meet(int fd, std::size_t count) {
    met_.push_back(fd);
    if (met_.size() < count) return;
    host_ = met_.front();
    unconfirmed_ = count - 1;
    std::string answer;
    append_answer(answer, 0);
    for (const int other : met_) {
      if (other != host_) ::send(other, answer.data(), answer.size(), MSG_NOSIGNAL);
    }
    met_.clear();
  }

  void confirm() {
    if (unconfirmed_ == 0 || --unconfirmed_ > 0) return;
    std::string answer;
    append_answer(answer, 0);
    ::send(host_, answer.data(), answer.size(), MSG_NOSIGNAL);
  }

  void write(Peer& peer) {
    const ssize_t count = ::send(peer.fd, peer.out.data(), peer.out.size(), MSG_NOSIGNAL);
    if (count > 0) peer.out.erase(0, static_cast<std::size_t>(count));
    if (peer.waits_to_write == !peer.out.empty()) return;
    peer.waits_to_write = !peer.out.empty();
    // Who does not read its answers is not read from.
    watch(peer.fd, EPOLL_CTL_MOD, peer.waits_to_write ? EPOLLOUT : EPOLLIN);
  }

  void drop(int fd) {
    std::erase(parked_, fd);
    std::erase(met_, fd);
    ::close(fd);
    peers_.erase(fd);
  }

  int listener_ = -1;
  int epoll_ = -1;
  std::vector<char> buffer_;
  std::unordered_map<int, std::unique_ptr<Peer>> peers_;
  std::vector<int> parked_;
  std::uint32_t parked_reply_bytes_ = 0;
  std::vector<int> met_;
  int host_ = -1;
  std::size_t unconfirmed_ = 0;
};

}  // namespace
}  // namespace muster::bench

int main() { muster::bench::EchoServer().serve(); }
