#include "net/tls/stream.h"

#include <algorithm>
#include <utility>

#include "net/tls/failure.h"

// Life cycle: as a Connection's, see there. What comes is decrypted at once, a record at a time,
// into the loop's buffer or to where the owner wants it; while the owner reads nothing it stays
// encrypted. The owner is asked once how much it reads, as by a Connection: that holds until it was
// given something. A stream that lingers still shakes hands, so that what it has can leave.

namespace muster::net::tls {

namespace {

constexpr std::size_t encrypted_bytes_max = 64 * 1024;  // that wait for the socket
constexpr Duration alert_timeout = std::chrono::seconds(1);

}  // namespace

bool TlsStream::is_lingering() const {
  return state_ == State::lingering || (state_ == State::closed && under_->is_lingering());
}

void TlsStream::begin() {
  state_ = State::open;
  under_->start(std::shared_ptr<ChannelOwner>(shared_from_this(), this));
  take({});
}

void TlsStream::take_over(ChannelOwner& owner, std::string_view came) {
  const auto self = shared_from_this();
  owner_ = &owner;
  state_ = State::open;
  under_->pass_to(std::shared_ptr<ChannelOwner>(self, this));
  take(came);
  if (state_ == State::open && !paused_) under_->resume_reading();
}

// Reading.

std::size_t TlsStream::readable_bytes() {
  if (state_ == State::lingering) return ~std::size_t{0};
  if (paused_ || owner_ == nullptr) return 0;
  if (granted_bytes_ == 0) granted_bytes_ = owner_->readable_bytes();
  return granted_bytes_;
}

void TlsStream::received(std::string_view bytes) {
  const auto self = shared_from_this();
  if (rest_.empty()) {
    take(bytes);
  } else {
    rest_ += bytes;
    take(std::exchange(rest_, {}));
  }
  granted_bytes_ = 0;
}

void TlsStream::take(std::string_view came) {
  const std::string_view left = take_some(came);
  if (state_ != State::open && state_ != State::lingering) return;
  if (!left.empty() || !rest_.empty()) rest_ = left;
  if (std::exchange(kept_bytes_, rest_.size()) != rest_.size() && state_ == State::open) {
    owner_->kept();
  }
  if (tls_.phase() == Phase::failed) {
    Failure failure = failure_of(tls_.session());
    fail(failure.cause, std::move(failure.detail));
  } else if (tls_.phase() == Phase::ended) {
    fail(CloseCause::by_peer, "the peer has closed the connection");
  }
  flush();
}

/// returns  what the owner does not read now
std::string_view TlsStream::take_some(std::string_view came) {
  const OwnerCall call(*this);
  while ((state_ == State::open && !paused_) || state_ == State::lingering) {
    const std::size_t readable = readable_bytes();
    if (readable == 0) {
      pause_reading();
      break;
    }
    const bool has_room = !room_.empty() && state_ == State::open;
    std::span<char> into = has_room ? room_ : std::span<char>(loop_.record_buffer);
    if (!has_room) into = into.first(std::min(readable, into.size()));
    const Read done = tls_.read(came, into);
    came.remove_prefix(done.taken);
    if (done.plain > 0 && state_ == State::open) {
      room_ = {};
      granted_bytes_ -= std::min(granted_bytes_, done.plain);
      owner_->received({into.data(), done.plain});
    }
    const bool is_over = done.phase == Phase::ended || done.phase == Phase::failed;
    if (done.plain == 0 && (done.taken == 0 || is_over)) break;
    // A record that has fitted in, and was the last one: no call is needed to hear that.
    if (came.empty() && done.plain > 0 && !tls_.is_record_cut()) break;
  }
  return came;
}

void TlsStream::pause_reading() {
  paused_ = true;
  under_->pause_reading();
}

void TlsStream::resume_reading() {
  paused_ = false;
  if (state_ != State::open) return;
  under_->resume_reading();
  if (!has_undelivered()) return;
  // What has come already is told of by the loop, too: the owner may be at work.
  loop_.post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->deliver();
    self->granted_bytes_ = 0;
  });
}

void TlsStream::read_now() {
  const auto self = shared_from_this();
  deliver();
  if (state_ == State::open && !paused_) under_->read_now();
  granted_bytes_ = 0;
}

/// What has come and was not read.
void TlsStream::deliver() {
  if (state_ == State::open && !paused_ && has_undelivered()) take(std::exchange(rest_, {}));
}

// Writing.

void TlsStream::send(std::string_view bytes) {
  if (state_ != State::open && state_ != State::fresh) return;
  tls_.add(bytes);
  count();
}

void TlsStream::send(SharedBytes bytes) {
  if (state_ != State::open && state_ != State::fresh) return;
  tls_.add(std::move(bytes));
  count();
}

void TlsStream::flush() {
  if (state_ != State::open && state_ != State::lingering) return;
  do {
    const std::uint64_t waiting_bytes = under_->unsent_bytes();
    if (waiting_bytes < encrypted_bytes_max) tls_.encrypt(encrypted_bytes_max - waiting_bytes);
    pass_on();
  } while (tls_.can_encrypt() && under_->unsent_bytes() == 0 && under_->is_open());
  if (tls_.queue().bytes() > 0) tls_.fit();
  count();
  if (state_ != State::lingering || tls_.queue().bytes() > 0) return;
  const auto self = weak_from_this().lock();
  // All is encrypted: the other channel sees to the rest.
  tls_.end();
  pass_on();
  under_->close_after_flush(linger_at_most_);
  let_go();
}

/// What is encrypted goes on its way.
void TlsStream::pass_on() {
  if (!tls_.out().empty()) {
    under_->send(tls_.out());
    tls_.drop_out();
  }
  under_->flush();
}

/// What has not left, here and below.
void TlsStream::count() {
  const std::uint64_t encrypted_bytes = under_->unsent_bytes() + tls_.out().size();
  unsent_bytes_ = tls_.queue().bytes() + encrypted_bytes;
  unsent_own_bytes_ = tls_.queue().own_bytes() + encrypted_bytes;
  unsent_for_one_bytes_ = tls_.queue().for_one_bytes();
  unsent_pieces_ = tls_.queue().pieces_count();
  stalled_since_ = encrypted_bytes > 0 ? under_->stalled_since() : base::far_future;
}

std::uint64_t TlsStream::held_bytes() const {
  return tls_.queue().allocated_bytes() + tls_.out().size() + under_->held_bytes();
}

std::uint64_t TlsStream::own_bytes() const {
  return (state_ == State::closed ? 0 : session_bytes) + rest_.size();
}

void TlsStream::drained() {
  const auto self = shared_from_this();
  const std::uint64_t before_bytes = unsent_bytes_;
  flush();
  if (state_ != State::open || unsent_bytes_ == before_bytes) return;
  {
    const OwnerCall call(*this);
    owner_->drained();
  }
  flush();
}

// The end.

void TlsStream::closed(CloseCause cause, std::string detail) {
  const auto self = shared_from_this();
  if (state_ != State::open) return close();
  if (!tls_.is_established()) detail = unestablished(tls_.session(), detail);
  state_ = State::failing;
  const auto callbacks = std::move(callbacks_);
  ChannelOwner* const owner = owner_;
  close();
  owner->closed(cause, std::move(detail));
}

/// The owner hears of it from the loop. What the peer is still told, such as why it is refused,
/// leaves meanwhile.
void TlsStream::fail(CloseCause cause, std::string detail) {
  if (state_ != State::open) return close();
  state_ = State::failing;
  pass_on();
  under_->close_after_flush(alert_timeout);
  loop_.post([self = shared_from_this(), cause, text = std::move(detail)]() mutable {
    if (self->state_ != State::failing) return;
    const auto callbacks = std::move(self->callbacks_);
    ChannelOwner* const owner = self->owner_;
    self->close();
    owner->closed(cause, std::move(text));
  });
}

/// One that has left what it had to the other channel closes that, too.
void TlsStream::close() {
  if (state_ == State::closed) {
    if (under_->is_lingering()) under_->close();
    return;
  }
  const auto self = weak_from_this().lock();
  if (state_ != State::failing || under_->is_open()) under_->close();
  let_go();
}

void TlsStream::let_go() {
  state_ = State::closed;
  tls_.let_go();
  rest_ = {};
  count();
  if (linger_) linger_->cancel();
  if (!in_callback_) let_go_of_owner();
}

void TlsStream::close_after_flush(Duration at_most) {
  if (state_ != State::open) return close();
  state_ = State::lingering;
  linger_at_most_ = at_most;
  if (!in_callback_) let_go_of_owner();
  linger_ = std::make_unique<Timer>(loop_);
  linger_->set_after(at_most, [this] {
    const auto self = shared_from_this();
    close();
  });
  if (paused_) under_->resume_reading();
  flush();
}

}  // namespace muster::net::tls
