#include "net/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
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
// Reads wait for readiness and then take what is there into the loop's buffer, or to where the
// owner wants it, and what has left gives its memory back to the loop: an idle connection has no
// buffer. Writes are tried at once; only what the socket does not take waits.
//
// When the socket takes no more, the queue gives memory back of which it uses less than half.

namespace muster::net {
namespace {

constexpr std::size_t views_per_write = 64;
constexpr int send_flags = MSG_DONTWAIT | MSG_NOSIGNAL;
constexpr int discards_per_turn = 4;
constexpr std::size_t read_bytes_max = 512 * 1024;
constexpr std::size_t read_bytes_per_turn = 256 * 1024;  // or one longer read

void set_option(int fd, int name, int value) {
  ::setsockopt(fd, IPPROTO_TCP, name, &value, sizeof(value));  // refused by Unix sockets
}

int in_milliseconds(Duration duration) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

CloseCause cause_of(int error) {
  return error == 0 || error == ECONNRESET || error == EPIPE ? CloseCause::by_peer
                                                             : CloseCause::lost;
}

iovec to_iovec(std::string_view view) { return {const_cast<char*>(view.data()), view.size()}; }

bool is_retry(int error) { return error == EAGAIN || error == EINTR; }

}  // namespace

std::shared_ptr<Connection> Connection::create(Loop& loop, UniqueFd fd, const SocketAddress& peer,
                                               Duration user_timeout) {
  if (!peer.is_unix()) set_options(fd.get(), user_timeout);
  return accepted(loop, std::move(fd), peer);
}

std::shared_ptr<Connection> Connection::accepted(Loop& loop, UniqueFd fd,
                                                 const SocketAddress& peer) {
  return std::make_shared<Connection>(Passkey(), loop, std::move(fd), peer);
}

Connection::Connection(Passkey, Loop& loop, UniqueFd fd, const SocketAddress& peer)
    : Watcher(loop), address_(peer), queue_(loop) {
  hold(std::move(fd));
  if (address_.is_there()) return;
  const bool is_nameless = peer.is_unix() && peer.host().empty();
  unix_peer_ = std::make_unique<const std::string>(
      to_string(is_nameless ? SocketAddress::local_of(Watcher::fd()) : peer));
}

Connection::~Connection() { close(); }

void Connection::set_options(int fd, Duration user_timeout) {
  set_option(fd, TCP_NODELAY, 1);
  set_option(fd, TCP_USER_TIMEOUT, in_milliseconds(user_timeout));
}

void Connection::set_user_timeout(Duration user_timeout) {
  set_option(fd(), TCP_USER_TIMEOUT, in_milliseconds(user_timeout));
}

std::string Connection::peer() const {
  return unix_peer_ ? *unix_peer_ : to_string(address_.address());
}

void Connection::begin() {
  state_ = State::open;
  self_ = shared_from_this();
  update_watch();
}

/// Reading that is paused stays in the epoll set until something comes: most often it goes on
/// before that.
void Connection::update_watch() {
  std::uint32_t events = is_blocked_ ? EPOLLOUT : 0U;
  if (state_ == State::lingering || (state_ == State::open && !paused_)) events |= EPOLLIN;
  if (state_ == State::failing) events = 0;
  const int failed = watch(events);
  if (failed != 0 && state_ != State::failing) fail(failed, "waiting");
}

/// Keeps a connection that is closed from within until nobody is in it any more.
class Connection::Visit {
 public:
  explicit Visit(Connection& connection) : connection_(connection) {
    connection_.is_visited_ = true;
  }
  ~Visit() {
    connection_.is_visited_ = false;
    const bool is_over = connection_.state_ == State::closed;
    const auto last = is_over ? std::move(connection_.self_) : nullptr;
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  Connection& connection_;
};

void Connection::on_ready(std::uint32_t events) {
  const Visit visit(*this);
  if ((events & ~std::uint32_t{EPOLLOUT}) != 0) on_readable();
  if (is_blocked_ && (events & ~std::uint32_t{EPOLLIN}) != 0) on_writable();
}

void Connection::on_loop_end() noexcept {
  const auto self = std::move(self_);
  close();
}

// Reading.

void Connection::on_readable() {
  if (state_ == State::open && !paused_) {
    read_batch();
  } else if (state_ == State::lingering) {
    discard_received();
  } else {
    return update_watch();
  }
  flush();
}

void Connection::read_batch() {
  const OwnerCall call(*this);
  std::size_t read_bytes = 0;
  for (std::size_t more = 1; more != 0 && read_bytes < read_bytes_per_turn; read_bytes += more) {
    more = read_once();
  }
}

/// returns  how much was there if there may be more, else 0
std::size_t Connection::read_once() {
  const std::size_t readable = owner_->readable_bytes();
  if (readable == 0) {
    pause_reading();
    return 0;
  }
  const std::span<char> buffer = room_.empty() ? std::span(loop().read_buffer) : room_;
  const std::size_t asked = std::min(buffer.size(), room_.empty() ? readable : read_bytes_max);
  const ssize_t count = ::recv(fd(), buffer.data(), asked, MSG_DONTWAIT);
  if (count <= 0) {
    const int error = count == 0 ? 0 : errno;
    if (!is_retry(error)) fail(error, "reading");
    return 0;
  }
  room_ = {};
  owner_->received({buffer.data(), static_cast<std::size_t>(count)});
  const bool may_be_more =
      static_cast<std::size_t>(count) == asked && state_ == State::open && !paused_;
  return may_be_more ? asked : 0;
}

void Connection::discard_received() {
  auto& buffer = loop().read_buffer;
  ssize_t count = 1;
  for (int turn = 0; turn < discards_per_turn && count > 0; ++turn) {
    count = ::recv(fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  }
  if (count == 0 || (count < 0 && !is_retry(errno))) close();
}

void Connection::pause_reading() { paused_ = true; }

void Connection::resume_reading() {
  paused_ = false;
  if (state_ == State::open) update_watch();
}

void Connection::read_now() {
  const Visit visit(*this);
  if (state_ == State::open && !paused_) on_readable();
}

// Writing.

void Connection::count() {
  unsent_bytes_ = queue_.bytes();
  unsent_own_bytes_ = queue_.own_bytes();
  unsent_for_one_bytes_ = queue_.for_one_bytes();
  unsent_pieces_ = queue_.pieces_count();
}

void Connection::send(std::string_view bytes) {
  if (state_ != State::open && state_ != State::fresh) return;
  queue_.add(bytes);
  unsent_bytes_ += bytes.size();
  unsent_own_bytes_ += bytes.size();
}

void Connection::send(SharedBytes bytes) {
  if (state_ != State::open && state_ != State::fresh) return;
  queue_.add(std::move(bytes));
  count();
}

void Connection::flush() {
  if (is_blocked_ || (unsent_bytes_ == 0 && state_ != State::lingering)) return;
  if (state_ == State::open || state_ == State::lingering) write_queue();
}

void Connection::write_queue() {
  while (unsent_bytes_ > 0) {
    const long sent = write_some();
    if (sent < 0) {
      if (!is_retry(errno)) return fail(errno, "writing");
      if (stalled_since_ == base::far_future) stalled_since_ = base::monotonic_now();
      queue_.fit();
      is_blocked_ = true;
      return update_watch();
    }
    took(static_cast<std::size_t>(sent));
  }
  reset_queue();
  if (state_ == State::lingering && !std::exchange(is_shut_, true)) ::shutdown(fd(), SHUT_WR);
}

/// returns  as sendmsg
long Connection::write_some() {
  std::array<iovec, views_per_write> views;
  const std::size_t views_count = queue_.front(views);
  if (views_count == 1) return ::send(fd(), views[0].iov_base, views[0].iov_len, send_flags);
  return send_views(std::span(views).first(views_count));
}

/// returns  as sendmsg
long Connection::send_views(std::span<iovec> views) {
  msghdr message{};
  message.msg_iov = views.data();
  message.msg_iovlen = views.size();
  return ::sendmsg(fd(), &message, send_flags);
}

void Connection::took(std::size_t bytes) {
  if (stalled_since_ != base::far_future) stalled_since_ = base::monotonic_now();
  queue_.took(bytes);
  count();
}

void Connection::reset_queue() {
  queue_.clear();
  count();
  stalled_since_ = base::far_future;
}

void Connection::on_writable() {
  const std::uint64_t before_bytes = unsent_bytes_;
  is_blocked_ = false;
  flush();
  if (state_ == State::open && unsent_bytes_ != before_bytes) {
    {
      const OwnerCall call(*this);
      owner_->drained();
    }
    flush();
  }
  if (state_ == State::open || state_ == State::lingering) update_watch();
}

std::size_t Connection::offer(std::span<const std::string_view> pieces) {
  if (state_ != State::open || is_blocked_) return 0;
  std::array<iovec, views_per_write> views;
  const std::size_t views_count = std::min(pieces.size(), views.size());
  for (std::size_t index = 0; index < views_count; ++index) views[index] = to_iovec(pieces[index]);
  const long sent = send_views(std::span(views).first(views_count));
  return sent > 0 ? static_cast<std::size_t>(sent) : 0;
}

std::size_t Connection::send_now(int descriptor, std::string_view bytes) noexcept {
  const ssize_t sent = ::send(descriptor, bytes.data(), bytes.size(), send_flags);
  return sent > 0 ? static_cast<std::size_t>(sent) : 0;
}

bool Connection::has_gone(int descriptor) noexcept {
  pollfd socket{descriptor, POLLRDHUP, 0};
  return ::poll(&socket, 1, 0) == 1 && (socket.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

// The end.

void Connection::fail(int error, const char* during) {
  if (state_ != State::open) return close();
  state_ = State::failing;
  is_blocked_ = false;
  reset_queue();
  std::string detail = error == 0 ? "the peer has closed the connection"
                                  : std::string(during) + ": " + text_of_errno(error);
  loop().post(
      [self = shared_from_this(), cause = cause_of(error), text = std::move(detail)]() mutable {
        self->read_the_rest();
        if (self->state_ != State::failing) return;
        const auto callbacks = std::move(self->callbacks_);
        ChannelOwner* const owner = self->owner_;
        const UniqueFd fd = self->give_away();  // until the owner knows that it is over
        self->close();
        owner->closed(cause, std::move(text));
      });
}

/// A write fails when the peer is gone; what it sent before, such as a goodbye, has come all the
/// same. It is bounded by the socket's buffer.
void Connection::read_the_rest() {
  auto& buffer = loop().read_buffer;
  const OwnerCall call(*this);
  while (state_ == State::failing && !paused_) {
    const ssize_t count = ::recv(fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count <= 0) break;
    owner_->received({buffer.data(), static_cast<std::size_t>(count)});
  }
}

void Connection::close() {
  if (state_ == State::closed) return;
  const auto self = is_visited_ ? nullptr : std::move(self_);
  state_ = State::closed;
  is_blocked_ = false;
  reset_queue();
  let_go();
  if (linger_) linger_->cancel();
  if (!in_callback_) let_go_of_owner();
}

void Connection::close_after_flush(Duration at_most) {
  if (state_ != State::open && state_ != State::fresh) return close();
  state_ = State::lingering;
  if (!in_callback_) let_go_of_owner();
  linger_ = std::make_unique<Timer>(loop());
  linger_->set_after(at_most, [this] {
    const auto self = shared_from_this();
    close();
  });
  self_ = shared_from_this();
  flush();
  if (state_ == State::lingering) update_watch();
}

}  // namespace muster::net
