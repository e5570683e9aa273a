#include "server/send_scheduler.h"

#include <algorithm>
#include <utility>

namespace muster::server {

void SendScheduler::mark_dirty(Peer& peer, std::uint64_t copied_bytes) {
  holdings_.has_copied(copied_bytes);
  if (peer.sending.dirty.linked()) return;
  dirty_.append(peer.sending.dirty);
  ++dirty_count_;
}

/// Also in the midst of an event's effects, so it ends nobody.
void SendScheduler::flush() {
  while (!dirty_.empty()) {
    if (!may_write()) return world_.wake_soon();
    Peer& peer = dirty_.first();
    peer.sending.dirty.leave();
    --dirty_count_;
    const bool has_waited = write(peer);
    const bool goes_on = peer.outbox.wants_part() || peer.is_held;
    const bool is_stalled = peer.connection->stalled_since() != base::far_future;
    if (goes_on && !is_stalled) continue_soon(peer, has_waited ? waiting_ : continuing_);
    look_at_unsent(peer);
  }
  holdings_.has_charged_all();
}

/// returns  whether something of a long reply might have left, and has to wait for others
bool SendScheduler::write(Peer& peer) {
  const std::uint64_t before_bytes = peer.outbox.unsent_bytes();
  const bool has_long = peer.outbox.has_long();
  const std::uint64_t long_bytes = has_long ? long_bytes_for(peer) : 0;
  peer.outbox.flush(long_bytes);
  peer.sending.is_next = false;
  // The headers of parts may be more than what has left.
  const std::uint64_t left_bytes = std::min(before_bytes, peer.outbox.unsent_bytes());
  written_.spend(steps_per_write + (before_bytes - left_bytes) / bytes_per_step);
  return has_long && long_bytes == 0;
}

/// How much of its long replies the peer is sent now: nothing before those that have waited.
std::uint64_t SendScheduler::long_bytes_for(const Peer& peer) {
  const bool others_wait = !waiting_.empty() || !continuing_.empty();
  if (others_wait && !peer.sending.is_next) return 0;
  const auto spent_steps = static_cast<std::uint64_t>(steps_per_turn() - left_steps());
  const std::uint64_t spent_bytes = spent_steps * bytes_per_step;
  const bool is_part_left = spent_bytes + Outbox::part_bytes_max <= long_bytes_per_turn;
  return is_part_left ? long_bytes_per_turn - spent_bytes : 0;
}

/// In the next turn of the loop, so that others have theirs before. One that is stalled continues
/// when it has drained.
void SendScheduler::continue_soon(Peer& peer, core::Chain<Peer>& behind) {
  if (peer.sending.continuing.linked()) return;  // it keeps its place
  if (waiting_.empty() && continuing_.empty()) world_.wake_soon();
  behind.append(peer.sending.continuing);
}

std::vector<Peer*> SendScheduler::take_continuing() {
  waiting_.append_all(continuing_);
  std::vector<Peer*> taken;
  while (!waiting_.empty() && taken.size() < limits_.turn.writes_per_turn) {
    Peer& peer = waiting_.first();
    peer.sending.continuing.leave();
    peer.sending.is_next = true;
    taken.push_back(&peer);
  }
  if (!waiting_.empty()) world_.wake_soon();
  return taken;
}

void SendScheduler::look_at_unsent(Peer& peer) {
  const std::uint64_t unsent_bytes = peer.outbox.unsent_bytes();
  if (unsent_bytes == 0 && peer.sending.counted_bytes == 0) return;  // as most often
  charge_unsent(peer);
  holdings_.weigh(peer);
  counts_.unsent_bytes += unsent_bytes - std::exchange(peer.sending.counted_bytes, unsent_bytes);
  if (peer.connection->stalled_since() == base::far_future) return delist(peer);
  if (!peer.sending.slow.linked()) enlist(peer);
}

/// The memory that is allocated: what was queued in this turn counted before as `has_copied`.
void SendScheduler::charge_unsent(Peer& peer) {
  const std::uint64_t held_bytes = peer.outbox.held_bytes();
  if (held_bytes > peer.sending.charged_bytes) {
    replies_.charge_always(held_bytes - peer.sending.charged_bytes);
  } else {
    replies_.release(peer.sending.charged_bytes - held_bytes);
  }
  peer.sending.charged_bytes = held_bytes;
}

void SendScheduler::enlist(Peer& peer) {
  ++counts_.slow;
  slow_.append(peer.sending.slow);
}

void SendScheduler::delist(Peer& peer) {
  if (peer.sending.slow.linked()) --counts_.slow;
  peer.sending.slow.leave();
}

bool SendScheduler::is_behind(Peer& peer) {
  if (!has_to_wait(peer)) return false;
  flush();  // others are before it
  return has_to_wait(peer);
}

void SendScheduler::hold(Peer& peer, std::uint64_t before_bytes) {
  const std::uint64_t waiting_bytes = peer.outbox.waiting_bytes();
  if (peer.is_held) return;
  peer.sending.asked_bytes = waiting_bytes - std::min(waiting_bytes, before_bytes);
  peer.is_held = true;
  ++counts_.held;
}

void SendScheduler::release(Peer& peer) {
  if (!std::exchange(peer.is_held, false)) return;
  --counts_.held;
  peer.sending.asked_bytes = 0;
}

void SendScheduler::forget(Peer& peer) {
  if (peer.sending.dirty.linked()) --dirty_count_;
  peer.sending.dirty.leave();
  peer.sending.continuing.leave();
  delist(peer);
  release(peer);
  counts_.unsent_bytes -= std::exchange(peer.sending.counted_bytes, 0);
  replies_.release(std::exchange(peer.sending.charged_bytes, 0));
  holdings_.forget(peer);
}

}  // namespace muster::server
