// What an event loop costs on Asio: the same echo server in several shapes, asked by another
// process over loopback, each connection one request of 64 bytes after the other.
//
//     asio_shapes SHAPE CONNECTIONS REQUESTS
//
// Prints the server's processor time per request. Its system calls and instructions per request are
// the difference of two runs with another number of REQUESTS, divided by the difference of those:
//
//     strace -c -o calls build/dev/bench/asio_shapes own 1 10000
//     valgrind --tool=callgrind build/dev/bench/asio_shapes own 32 1000
//
// (of valgrind's two reports the second is the server's; with -Doptimization=2).
//
// SHAPE: own        one level-triggered epoll set, as Muster's loop has
//        wait       async_wait, then recv
//        read       async_read_some
//        read_once  the same with reactor.reset_edge_on_partial_read (Asio 1.37)
//        inside     the epoll set of `own`, served by an io_context that waits for its descriptor

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/version.hpp>
#if ASIO_VERSION >= 103700
#include <asio/config.hpp>
#endif

namespace {

using asio::ip::tcp;

constexpr std::size_t request_bytes = 64;
constexpr int events_max = 256;
using Buffer = std::array<char, 4096>;

void require(bool holds, const char* what) {
  if (holds) return;
  std::perror(what);
  std::exit(1);
}

int new_socket() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  require(fd >= 0, "socket");
  return fd;
}

sockaddr_in loopback(in_port_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = port;
  return address;
}

/// A level-triggered epoll set of connections.
class Set {
 public:
  Set() : fd_(::epoll_create1(EPOLL_CLOEXEC)) {}
  ~Set() { ::close(fd_); }
  Set(const Set&) = delete;
  Set& operator=(const Set&) = delete;

  int fd() const { return fd_; }

  void add(int connection) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = connection;
    require(::epoll_ctl(fd_, EPOLL_CTL_ADD, connection, &event) == 0, "epoll_ctl");
  }

  template <class Tell>
  void turn(int timeout_ms, Tell tell) {
    const int count = ::epoll_wait(fd_, events_.data(), events_max, timeout_ms);
    for (int at = 0; at < count; ++at) tell(events_[static_cast<std::size_t>(at)].data.fd);
  }

 private:
  const int fd_;
  std::array<epoll_event, events_max> events_;
};

/// The other process: asks on all connections, until each has `request_count` answers.
[[noreturn]] void ask(in_port_t port, int connection_count, long request_count) {
  const std::string request(request_bytes, 'r');
  const sockaddr_in address = loopback(port);
  const auto send = [&](int fd) { return ::send(fd, request.data(), request.size(), 0) > 0; };
  Set set;
  for (int count = 0; count < connection_count; ++count) {
    const int fd = new_socket();
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    require(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
                send(fd),
            "connect");
    set.add(fd);
  }
  Buffer buffer;
  long left = connection_count * request_count;
  while (left > 0) {
    set.turn(-1, [&](int fd) {
      if (::recv(fd, buffer.data(), buffer.size(), 0) <= 0) std::exit(1);
      if (--left >= connection_count) send(fd);
    });
  }
  std::exit(0);
}

/// Serves the connections until all requests are answered.
class Server {
 public:
  Server(std::vector<int> connections, long request_count)
      : connections_(std::move(connections)), left_(request_count) {}

  void serve_own() {
    Set set;
    for (const int fd : connections_) set.add(fd);
    while (left_ > 0) {
      set.turn(-1, [this](int fd) { receive_and_answer(fd); });
    }
  }

  void serve_inside() {
    asio::io_context context(1);
    Set set;
    for (const int fd : connections_) set.add(fd);
    asio::posix::stream_descriptor descriptor(context, ::dup(set.fd()));
    wait_for_set(descriptor, set);
    context.run();
  }

  void serve_wait() {
    asio::io_context context(1);
    std::vector<tcp::socket> sockets = adopt(context);
    for (tcp::socket& socket : sockets) wait_for(socket);
    context.run();
  }

  void serve_read(asio::io_context& context) {
    std::vector<tcp::socket> sockets = adopt(context);
    std::vector<Buffer> buffers(sockets.size());
    for (std::size_t at = 0; at < sockets.size(); ++at) read(sockets[at], buffers[at]);
    context.run();
  }

 private:
  std::vector<tcp::socket> adopt(asio::io_context& context) const {
    std::vector<tcp::socket> sockets;
    for (const int fd : connections_) sockets.emplace_back(context, tcp::v4(), fd);
    return sockets;
  }

  void answer(int fd, const Buffer& bytes, std::size_t size) {
    require(::send(fd, bytes.data(), size, MSG_NOSIGNAL) > 0, "send");
    --left_;
  }

  /// returns  false at the connection's end
  bool receive_and_answer(int fd) {
    const ssize_t count = ::recv(fd, buffer_.data(), buffer_.size(), 0);
    if (count > 0) answer(fd, buffer_, static_cast<std::size_t>(count));
    return count > 0;
  }

  void wait_for_set(asio::posix::stream_descriptor& descriptor, Set& set) {
    descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                          [this, &descriptor, &set](const asio::error_code&) {
                            set.turn(0, [this](int fd) { receive_and_answer(fd); });
                            if (left_ > 0) wait_for_set(descriptor, set);
                          });
  }

  void wait_for(tcp::socket& socket) {
    socket.async_wait(tcp::socket::wait_read, [this, &socket](const asio::error_code& error) {
      if (!error && receive_and_answer(socket.native_handle())) wait_for(socket);
    });
  }

  void read(tcp::socket& socket, Buffer& buffer) {
    socket.async_read_some(asio::buffer(buffer),
                           [this, &socket, &buffer](const asio::error_code& error, auto size) {
                             if (error) return;
                             answer(socket.native_handle(), buffer, size);
                             read(socket, buffer);
                           });
  }

  const std::vector<int> connections_;
  long left_;
  Buffer buffer_;
};

void serve(const std::string& shape, Server& server) {
  if (shape == "own") return server.serve_own();
  if (shape == "wait") return server.serve_wait();
  if (shape == "inside") return server.serve_inside();
  if (shape == "read") {
    asio::io_context context(1);
    return server.serve_read(context);
  }
#if ASIO_VERSION >= 103700
  if (shape == "read_once") {
    asio::io_context context(asio::config_from_string("reactor.reset_edge_on_partial_read=1"));
    return server.serve_read(context);
  }
#endif
  std::fprintf(stderr, "%s: no such shape with this Asio\n", shape.c_str());
  std::exit(2);
}

double microseconds(const timeval& time) {
  return 1e6 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec);
}

}  // namespace

int main(int argc, char** argv) {
  const int connection_count = argc == 4 ? std::atoi(argv[2]) : 0;
  const long request_count = argc == 4 ? std::atol(argv[3]) : 0;
  if (connection_count <= 0 || request_count <= 0) {
    std::fputs("usage: asio_shapes SHAPE CONNECTIONS REQUESTS\n", stderr);
    return 2;
  }
  const int listener = new_socket();
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof(address);
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  require(::bind(listener, raw, size) == 0 && ::listen(listener, connection_count) == 0 &&
              ::getsockname(listener, raw, &size) == 0,
          "listen");
  const pid_t client = ::fork();
  if (client == 0) ask(address.sin_port, connection_count, request_count);
  std::vector<int> connections;
  for (int count = 0; count < connection_count; ++count) {
    connections.push_back(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    const int on = 1;
    ::setsockopt(connections.back(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  Server server(connections, connection_count * request_count);
  rusage before{};
  rusage after{};
  ::getrusage(RUSAGE_SELF, &before);
  serve(argv[1], server);
  ::getrusage(RUSAGE_SELF, &after);
  const auto requests = static_cast<double>(connection_count * request_count);
  std::printf("%s, %d connections: %.3f us of user and %.3f us of system time per request\n",
              argv[1], connection_count,
              (microseconds(after.ru_utime) - microseconds(before.ru_utime)) / requests,
              (microseconds(after.ru_stime) - microseconds(before.ru_stime)) / requests);
  int status = 0;
  return ::waitpid(client, &status, 0) == client && status == 0 ? 0 : 1;
}
