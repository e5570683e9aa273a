#include "net/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/monotonic_now.h"
#include "net/failure.h"

// Life cycle: fresh -> `start` -> open -> the peer ends it: failing (what was queued is let go,
// `closed` is about to be called) -> closed; or the owner does: closed at once, or lingering until
// the queue has left, the sending side is shut and the peer has answered with its own end. Without
// the lingering, bytes that still arrive would make the kernel send a reset, and a reset may
// overtake the last reply.
//
// Reads wait for readiness and then take what is there into the loop's buffer: an idle connection
// has no buffer. Writes are tried at once; only what the socket does not take waits.

namespace muster::net {
namespace {

constexpr std::size_t shared_bytes_min = 2048;      // shorter ones are copied: one piece less
constexpr std::size_t own_piece_bytes = 64 * 1024;  // then another piece begins
constexpr std::size_t spare_bytes_max = 1024;       // of memory that an idle connection keeps
constexpr std::size_t pieces_per_write = 64;
constexpr int reads_per_turn = 4;

void set_option(int fd, int name, int value) {
  ::setsockopt(fd, IPPROTO_TCP, name, &value, sizeof(value));  // refused by Unix sockets
}

CloseCause cause_of(int error) {
  return error == 0 || error == ECONNRESET || error == EPIPE ? CloseCause::by_peer
                                                             : CloseCause::lost;
}

bool is_retry(int error) { return error == EAGAIN || error == EINTR; }

}  // namespace

std::shared_ptr<Connection> Connection::create(Socket socket, Duration user_timeout) {
  return std::shared_ptr<Connection>(new Connection(std::move(socket), user_timeout));
}

Connection::Connection(Socket socket, Duration user_timeout)
    : socket_(std::move(socket)),
      loop_(LoopState::of(asio::query(socket_.get_executor(), asio::execution::context))),
      tracked_(loop_, socket_.native_handle()) {
  const int fd = socket_.native_handle();
  const SocketAddress peer = SocketAddress::peer_of(fd);
  peer_ = to_string(peer.is_unix() && peer.host().empty() ? SocketAddress::local_of(fd) : peer);
  if (!peer.is_unix()) {
    set_option(fd, TCP_NODELAY, 1);
    set_user_timeout(user_timeout);
  }
}

Connection::~Connection() { close(); }

void Connection::set_user_timeout(Duration user_timeout) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(user_timeout);
  set_option(socket_.native_handle(), TCP_USER_TIMEOUT, static_cast<int>(milliseconds.count()));
}

void Connection::start(Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  state_ = State::open;
  wait_readable();
}

// Reading.

void Connection::wait_readable() {
  const bool wanted = (state_ == State::open && !paused_) || state_ == State::lingering;
  if (!wanted || wait_read_pending_) return;
  wait_read_pending_ = true;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const asio::error_code& error) {
    self->wait_read_pending_ = false;
    if (!error) self->on_readable();
  });
}

void Connection::on_readable() {
  if (state_ == State::open && !paused_) {
    read_batch();
  } else if (state_ == State::lingering) {
    discard_received();
  }
  flush();
  wait_readable();
}

void Connection::read_batch() {
  in_callback_ = true;
  for (int turn = 0; turn < reads_per_turn && read_once(); ++turn) {
  }
  leave_callback();
}

/// returns  whether more may be there
bool Connection::read_once() {
  auto& buffer = loop_.read_buffer;
  const ssize_t count = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count <= 0) {
    const int error = count == 0 ? 0 : errno;
    if (!is_retry(error)) fail(error, "reading");
    return false;
  }
  callbacks_.received({buffer.data(), static_cast<std::size_t>(count)});
  return static_cast<std::size_t>(count) == buffer.size() && state_ == State::open && !paused_;
}

void Connection::discard_received() {
  auto& buffer = loop_.read_buffer;
  ssize_t count = 1;
  for (int turn = 0; turn < reads_per_turn && count > 0; ++turn) {
    count = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  }
  if (count == 0 || (count < 0 && !is_retry(errno))) close();
}

void Connection::pause_reading() { paused_ = true; }

void Connection::resume_reading() {
  paused_ = false;
  wait_readable();
}

// Writing.

std::string& Connection::queue_tail() {
  if (first_ == queue_.size() || queue_.back().shared.keep_alive ||
      queue_.back().own.size() >= own_piece_bytes) {
    queue_.push_back({std::exchange(spare_, {}), {}});
  }
  return queue_.back().own;
}

void Connection::send(std::string_view bytes) {
  if (state_ != State::open && state_ != State::fresh) return;
  queue_tail().append(bytes);
  unsent_bytes_ += bytes.size();
  unsent_own_bytes_ += bytes.size();
}

void Connection::send(SharedBytes bytes) {
  if (state_ != State::open && state_ != State::fresh) return;
  if (bytes.view.size() < shared_bytes_min || !bytes.keep_alive) return send(bytes.view);
  unsent_bytes_ += bytes.view.size();
  queue_.push_back({{}, std::move(bytes)});
}

void Connection::flush() {
  if (wait_write_pending_) return;
  if (state_ == State::open || state_ == State::lingering) write_queue();
}

void Connection::write_queue() {
  while (unsent_bytes_ > 0) {
    const long sent = write_some();
    if (sent < 0) {
      if (!is_retry(errno)) return fail(errno, "writing");
      if (stalled_since_ == base::far_future) stalled_since_ = base::monotonic_now();
      return wait_writable();
    }
    took(static_cast<std::size_t>(sent));
  }
  reset_queue();
  if (state_ == State::lingering) ::shutdown(socket_.native_handle(), SHUT_WR);
}

/// returns  as sendmsg
long Connection::write_some() {
  std::array<iovec, pieces_per_write> views;
  const std::size_t count = std::min(queue_.size() - first_, pieces_per_write);
  for (std::size_t index = 0; index < count; ++index) {
    std::string_view view = queue_[first_ + index].view();
    if (index == 0) view.remove_prefix(first_sent_bytes_);
    views[index] = {const_cast<char*>(view.data()), view.size()};
  }
  msghdr message{};
  message.msg_iov = views.data();
  message.msg_iovlen = count;
  return ::sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void Connection::took(std::size_t bytes) {
  unsent_bytes_ -= bytes;
  if (stalled_since_ != base::far_future) stalled_since_ = base::monotonic_now();
  while (bytes > 0) {
    Piece& piece = queue_[first_];
    const std::size_t step = std::min(bytes, piece.view().size() - first_sent_bytes_);
    if (!piece.shared.keep_alive) unsent_own_bytes_ -= step;
    first_sent_bytes_ += step;
    bytes -= step;
    if (first_sent_bytes_ < piece.view().size()) return;
    if (piece.own.capacity() <= spare_bytes_max) {
      spare_ = std::move(piece.own);
      spare_.clear();
    }
    piece = {};
    ++first_;
    first_sent_bytes_ = 0;
  }
  if (first_ >= pieces_per_write && 2 * first_ >= queue_.size()) {
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
}

void Connection::reset_queue() {
  queue_.clear();
  if (queue_.capacity() > pieces_per_write) queue_.shrink_to_fit();
  first_ = 0;
  first_sent_bytes_ = 0;
  unsent_bytes_ = 0;
  unsent_own_bytes_ = 0;
  stalled_since_ = base::far_future;
}

void Connection::wait_writable() {
  wait_write_pending_ = true;
  socket_.async_wait(Socket::wait_write,
                     [self = shared_from_this()](const asio::error_code& error) {
                       self->wait_write_pending_ = false;
                       if (!error) self->on_writable();
                     });
}

void Connection::on_writable() {
  const std::uint64_t before_bytes = unsent_bytes_;
  flush();
  if (state_ != State::open || unsent_bytes_ == before_bytes || !callbacks_.drained) return;
  in_callback_ = true;
  callbacks_.drained();
  leave_callback();
  flush();
}

// The end.

void Connection::leave_callback() {
  in_callback_ = false;
  if (state_ == State::closed || state_ == State::lingering) callbacks_ = {};
}

void Connection::fail(int error, const char* during) {
  if (state_ != State::open) return close();
  state_ = State::failing;
  reset_queue();
  std::string detail = error == 0 ? "the peer has closed the connection"
                                  : std::string(during) + ": " + text_of_errno(error);
  asio::post(socket_.get_executor(),
             [self = shared_from_this(), cause = cause_of(error), text = std::move(detail)] {
               self->read_the_rest();
               if (self->state_ != State::failing) return;
               const Callbacks callbacks = std::move(self->callbacks_);
               self->close();
               callbacks.closed(cause, text);
             });
}

/// A write fails when the peer is gone; what it sent before, such as a goodbye, has come all the
/// same. It is bounded by the socket's buffer.
void Connection::read_the_rest() {
  auto& buffer = loop_.read_buffer;
  in_callback_ = true;
  while (state_ == State::failing && !paused_) {
    const ssize_t count =
        ::recv(socket_.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count <= 0) break;
    callbacks_.received({buffer.data(), static_cast<std::size_t>(count)});
  }
  leave_callback();
}

void Connection::close() {
  if (state_ == State::closed) return;
  state_ = State::closed;
  reset_queue();
  tracked_.release();
  asio::error_code ignored;
  socket_.close(ignored);
  if (linger_) linger_->cancel();
  if (!in_callback_) callbacks_ = {};
}

void Connection::close_after_flush(Duration at_most) {
  if (state_ != State::open && state_ != State::fresh) return close();
  state_ = State::lingering;
  if (!in_callback_) callbacks_ = {};
  linger_ = std::make_unique<asio::steady_timer>(socket_.get_executor(), at_most);
  linger_->async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (!error) self->close();
  });
  flush();
  wait_readable();
}

asio::generic::stream_protocol protocol_of(const SocketAddress& address) {
  return {address.family(), address.is_unix() ? 0 : IPPROTO_TCP};
}

std::optional<Connection::Socket> socket_on(asio::io_context& context, const SocketAddress& address,
                                            int fd) {
  if (fd < 0) return std::nullopt;
  Connection::Socket socket(context);
  asio::error_code error;
  socket.assign(protocol_of(address), fd, error);
  if (!error) return socket;
  ::close(fd);
  return std::nullopt;
}

}  // namespace muster::net
