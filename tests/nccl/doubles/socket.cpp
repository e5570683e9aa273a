#include "nccl/doubles/socket.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "nccl/doubles/counts.h"

// Every wait is a poll of the socket and of the Cancel's eventfd, which stays readable once it is
// set: what waits then, and what will, ends at once.

namespace nccl_double {
namespace {

long environment_number(const char* name, long otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : std::atol(value);
}

/// As NCCL does: it never blocks, and what is small is not held back.
void set_options(int descriptor) {
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  const int one = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/// False: cancelled.
bool wait_until_ready(int descriptor, short events, const Cancel& cancel) {
  if (cancel.is_set()) return false;
  std::array<pollfd, 2> waited{{{descriptor, events, 0}, {cancel.descriptor(), POLLIN, 0}}};
  while (::poll(waited.data(), waited.size(), -1) < 0 && errno == EINTR) {
  }
  return !cancel.is_set();
}

Connected connect_once(const sockaddr_in& address, const Cancel& cancel) {
  Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
  set_options(socket.descriptor());
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(socket.descriptor(), generic, sizeof address) != 0) {
    if (errno != EINPROGRESS) return {{}, Outcome::refused};
    if (!wait_until_ready(socket.descriptor(), POLLOUT, cancel)) return {{}, Outcome::cancelled};
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return {{}, Outcome::refused};
  }
  return {std::move(socket), Outcome::done};
}

}  // namespace

Cancel::Cancel() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { ++counts().descriptors; }

void Cancel::close() {
  if (descriptor_ < 0) return;
  set();
  ::close(std::exchange(descriptor_, -1));
  --counts().descriptors;
}

void Cancel::set() {
  is_set_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(descriptor_, &one, sizeof one);
}

void Cancel::wait() const {
  while (!is_set_) wait_for(std::chrono::hours(1));
}

void Cancel::wait_for(std::chrono::milliseconds time) const {
  if (is_set_) return;
  pollfd waited{descriptor_, POLLIN, 0};
  ::poll(&waited, 1, static_cast<int>(time.count()));
}

Socket::Socket(int descriptor) : descriptor_(descriptor) {
  if (is_open()) ++counts().descriptors;
}

void Socket::close() {
  if (!is_open()) return;
  ::close(std::exchange(descriptor_, -1));
  --counts().descriptors;
}

Listener listen_on_loopback(std::uint16_t port) {
  Listener listener{Socket(::socket(AF_INET, SOCK_STREAM, 0)), {}};
  listener.address.sin_family = AF_INET;
  listener.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  listener.address.sin_port = htons(port);
  auto* const generic = reinterpret_cast<sockaddr*>(&listener.address);
  socklen_t size = sizeof listener.address;
  const int descriptor = listener.socket.descriptor();
  if (::bind(descriptor, generic, size) != 0 || ::listen(descriptor, 128) != 0 ||
      ::getsockname(descriptor, generic, &size) != 0) {
    listener.socket.close();
  }
  return listener;
}

Connected accept_at(const Socket& listener, const Cancel& cancel) {
  set_options(listener.descriptor());
  for (;;) {
    if (!wait_until_ready(listener.descriptor(), POLLIN, cancel)) return {{}, Outcome::cancelled};
    Socket peer(::accept(listener.descriptor(), nullptr, nullptr));
    if (peer.is_open()) {
      set_options(peer.descriptor());
      return {std::move(peer), Outcome::done};
    }
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) return {{}, Outcome::closed};
  }
}

Connected connect_to(const sockaddr_in& address, const Cancel& cancel) {
  const long retries = environment_number("NCCL_SOCKET_RETRY_CNT", 34);
  const std::chrono::milliseconds pause(environment_number("NCCL_SOCKET_RETRY_SLEEP_MSEC", 100));
  for (long failures = 0;;) {
    Connected connected = connect_once(address, cancel);
    if (connected.outcome != Outcome::refused || ++failures > retries) return connected;
    cancel.wait_for(pause * failures);
    if (cancel.is_set()) return {{}, Outcome::cancelled};
  }
}

Transfer sending(const Socket& socket, const void* bytes, std::size_t size_bytes) {
  // Only read from: `move` looks at the direction.
  auto* const writable = const_cast<char*>(static_cast<const char*>(bytes));
  return {socket.descriptor(), writable, size_bytes, Transfer::Direction::send};
}

Transfer receiving(const Socket& socket, void* bytes, std::size_t size_bytes) {
  return {socket.descriptor(), static_cast<char*>(bytes), size_bytes, Transfer::Direction::receive};
}

Moved move(Transfer& transfer) {
  if (transfer.left == 0) return Moved::done;
  const bool is_send = transfer.direction == Transfer::Direction::send;
  const ssize_t count =
      is_send ? ::send(transfer.descriptor, transfer.bytes, transfer.left, MSG_NOSIGNAL)
              : ::recv(transfer.descriptor, transfer.bytes, transfer.left, 0);
  if (count < 0) return errno == EAGAIN || errno == EINTR ? Moved::some : Moved::closed;
  if (count == 0) return Moved::closed;
  transfer.bytes += count;
  transfer.left -= static_cast<std::size_t>(count);
  return transfer.left == 0 ? Moved::done : Moved::some;
}

namespace {

/// Whether the peer has told that it has everything; it may go then, and be gone.
bool has_finished(int descriptor) {
  char byte = 0;
  return ::recv(descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

}  // namespace

Outcome exchange(Transfer out, Transfer in, const Cancel& cancel) {
  while (out.left > 0 || in.left > 0) {
    if (cancel.is_set()) return Outcome::cancelled;
    const auto events = static_cast<short>(POLLRDHUP | (out.left > 0 ? POLLOUT : 0));
    std::array<pollfd, 3> waited{{{cancel.descriptor(), POLLIN, 0},
                                  {out.descriptor, events, 0},
                                  {in.left > 0 ? in.descriptor : -1, POLLIN, 0}}};
    ::poll(waited.data(), waited.size(), -1);
    if (cancel.is_set()) return Outcome::cancelled;
    if (waited[1].revents != 0 && out.left > 0) {
      if (move(out) == Moved::closed) return Outcome::closed;
    } else if (waited[1].revents != 0) {
      if (!has_finished(out.descriptor)) return Outcome::closed;
      out.descriptor = -1;
    }
    if (waited[2].revents != 0 && move(in) == Moved::closed) return Outcome::closed;
  }
  return Outcome::done;
}

Outcome finish_round(const Socket& next, const Socket& previous, const Cancel& cancel) {
  char byte = 'f';
  const Outcome outcome = send(previous, &byte, 1, cancel);
  return outcome == Outcome::done ? receive(next, &byte, 1, cancel) : outcome;
}

Outcome send(const Socket& socket, const void* bytes, std::size_t size_bytes,
             const Cancel& cancel) {
  return exchange(sending(socket, bytes, size_bytes), {}, cancel);
}

Outcome receive(const Socket& socket, void* bytes, std::size_t size_bytes, const Cancel& cancel) {
  return exchange({}, receiving(socket, bytes, size_bytes), cancel);
}

}  // namespace nccl_double
