#include "server_world.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace muster::script {
namespace {

constexpr std::size_t shared_bytes_min = 2048;  // as net::Connection: shorter ones are copied
constexpr std::size_t read_bytes_max = 64 * 1024;

}  // namespace

FakeChannel::FakeChannel(std::string peer, Observer observer)
    : peer_(std::move(peer)), observer_(std::move(observer)) {}

// Writing.

void FakeChannel::send(std::string_view bytes) {
  if (state_ != State::open && state_ != State::fresh) return;
  if (bytes.empty()) return;
  if (queue_.empty() || queue_.back().keep_alive) queue_.emplace_back();
  queue_.back().bytes += bytes;
  unsent_bytes_ += bytes.size();
  unsent_own_bytes_ += bytes.size();
}

void FakeChannel::send(net::SharedBytes bytes) {
  if (state_ != State::open && state_ != State::fresh) return;
  if (bytes.view.size() < shared_bytes_min || !bytes.keep_alive) return send(bytes.view);
  if (bytes.is_for_one) unsent_for_one_bytes_ += bytes.view.size();
  queue_.push_back({std::string(bytes.view), std::move(bytes.keep_alive), bytes.is_for_one});
  ++unsent_pieces_;
  unsent_bytes_ += queue_.back().bytes.size();
}

void FakeChannel::flush() {
  if (is_blocked_ || unsent_bytes_ == 0) return;
  if (state_ == State::open || state_ == State::lingering) write();
}

std::size_t FakeChannel::offer(std::span<const std::string_view> pieces) {
  if (state_ != State::open || is_blocked_) return 0;
  std::string written;
  for (const std::string_view piece : pieces) written += piece;
  if (capacity_) {
    written.resize(static_cast<std::size_t>(std::min<std::uint64_t>(written.size(), *capacity_)));
    *capacity_ -= written.size();
  }
  if (!written.empty()) observer_.took(written);
  return written.size();
}

/// One write, of as much as the socket takes.
void FakeChannel::write() {
  std::string written;
  while (!queue_.empty() && capacity_ != std::uint64_t{0}) {
    Piece& piece = queue_.front();
    std::size_t count = piece.bytes.size();
    if (capacity_) {
      count = static_cast<std::size_t>(std::min<std::uint64_t>(count, *capacity_));
      *capacity_ -= count;
    }
    written.append(piece.bytes, 0, count);
    unsent_bytes_ -= count;
    if (!piece.keep_alive) unsent_own_bytes_ -= count;
    if (piece.is_for_one) unsent_for_one_bytes_ -= count;
    piece.bytes.erase(0, count);
    if (!piece.bytes.empty()) continue;
    if (piece.keep_alive) --unsent_pieces_;
    queue_.pop_front();
  }
  is_blocked_ = !queue_.empty();
  if (!is_blocked_) {
    stalled_since_ = base::far_future;
  } else if (!written.empty() || stalled_since_ == base::far_future) {
    stalled_since_ = observer_.now();
  }
  if (!written.empty()) observer_.took(written);
  if (state_ == State::lingering && !is_blocked_) finish_lingering();
}

void FakeChannel::take_everything() {
  capacity_.reset();
  drain();
}

void FakeChannel::take(std::uint64_t bytes) {
  capacity_ = capacity_.value_or(0) + bytes;
  drain();
}

void FakeChannel::drain() {
  if (!is_blocked_) return;
  is_blocked_ = false;
  flush();
  if (state_ != State::open) return;
  owner_->drained();
  flush();
}

// Reading.

void FakeChannel::deliver(std::string_view bytes) {
  if (state_ != State::open) return;
  incoming_ += bytes;
  read();
}

bool FakeChannel::read() {
  if (incoming_.empty()) return false;
  bool any = false;
  std::string buffer(read_bytes_max, '\0');
  while (!incoming_.empty() && state_ == State::open && !is_paused_) {
    const std::size_t readable = owner_->readable_bytes();
    if (readable == 0) {
      pause_reading();
      break;
    }
    const std::span<char> to =
        room_.empty() ? std::span(buffer).first(std::min(readable, buffer.size())) : room_;
    room_ = {};
    const std::size_t count = std::min(to.size(), incoming_.size());
    std::memcpy(to.data(), incoming_.data(), count);
    incoming_.erase(0, count);
    any = true;
    owner_->received({to.data(), count});
  }
  flush();
  return any;
}

void FakeChannel::pause_reading() {
  if (!std::exchange(is_paused_, true)) observer_.changed("not_read");
}

void FakeChannel::resume_reading() {
  if (std::exchange(is_paused_, false)) observer_.changed("read_again");
}

// The end.

void FakeChannel::end(net::CloseCause cause) {
  if (state_ != State::open) return;
  state_ = State::closed;
  drop_queue();
  owner_->closed(cause, cause == net::CloseCause::by_peer ? "by the peer" : "by the network");
}

void FakeChannel::close() {
  if (state_ == State::closed) return;
  state_ = State::closed;
  drop_queue();
  observer_.changed("closed");
}

void FakeChannel::close_after_flush(Duration at_most) {
  state_ = State::lingering;
  linger_deadline_ = observer_.now() + at_most;
  if (!is_blocked_) write();
}

/// All is sent; the peer sees the end and closes its side, too.
void FakeChannel::finish_lingering() {
  observer_.changed("closed");
  if (!peer_stays_) state_ = State::closed;
}

void FakeChannel::linger_out() {
  if (state_ != State::lingering) return;
  if (unsent_bytes_ > 0) observer_.changed("closed");
  state_ = State::closed;
  drop_queue();
}

void FakeChannel::drop_queue() {
  queue_.clear();
  unsent_bytes_ = 0;
  unsent_own_bytes_ = 0;
  unsent_for_one_bytes_ = 0;
  unsent_pieces_ = 0;
  stalled_since_ = base::far_future;
}

}  // namespace muster::script
