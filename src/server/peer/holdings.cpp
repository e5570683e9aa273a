#include "server/peer/holdings.h"

#include <algorithm>
#include <utility>

#include "core/memory/frame_charging.h"
#include "wire/frame.h"

namespace muster::server {

void Weights::put(Peer& peer, std::uint64_t bytes) {
  const std::uint64_t before_bytes = std::exchange(peer.memory.weight_bytes, bytes);
  if (std::bit_width(bytes) == std::bit_width(before_bytes)) return;
  peer.memory.by_weight.leave();
  if (before_bytes != 0 && chains_[class_of(before_bytes)].empty()) {
    used_ &= ~(std::uint64_t{1} << class_of(before_bytes));
  }
  if (bytes == 0) return;
  chains_[class_of(bytes)].append(peer.memory.by_weight);
  used_ |= std::uint64_t{1} << class_of(bytes);
}

/// Whether frames that have come from the peer are not handled yet, although they are complete.
bool Holdings::waits(const Peer& peer) {
  return peer.is_held || peer.work.in_unit.linked() || peer.postponed.bytes != 0;
}

/// A long frame that is under way is charged as what it brings, and refused when there is no room.
std::uint64_t Holdings::waiting_frames_bytes(const Peer& peer) {
  const std::uint64_t stored_bytes = peer.intake->stored_bytes();
  const bool is_short = stored_bytes <= core::freeing_body_bytes_always + wire::frame_header_bytes;
  return waits(peer) || is_short ? stored_bytes : 0;
}

void Holdings::weigh(Peer& peer) {
  const std::uint64_t stored_bytes = waiting_frames_bytes(peer);
  frames_bytes_ += stored_bytes - std::exchange(peer.memory.stored_bytes, stored_bytes);
  weights_.put(peer, peer.outbox.own_bytes() + stored_bytes);
}

void Holdings::forget(Peer& peer) {
  frames_bytes_ -= std::exchange(peer.memory.stored_bytes, 0);
  weights_.put(peer, 0);
  postpone_no_more(peer);
}

/// A peer may send what it is assured of; others a small part of what is free, so that many who
/// send at once leave something. A peer that has its share may send little at once, and what is too
/// much of it is refused when it has come.
std::uint64_t Holdings::readable_bytes(const Peer& peer, std::uint64_t bytes) const {
  const std::uint64_t assured_bytes = peer.intake->assured_bytes();
  if (assured_bytes >= core::frame_read_bytes_min) return std::min(assured_bytes, bytes);
  const bool has_share = peer.intake->has_share(bytes);
  const std::uint64_t part_bytes = has_share ? room_.free_bytes(frames_bytes_) / 16 : 0;
  if (part_bytes >= bytes) return bytes;
  const std::uint64_t skipped_bytes = peer.intake->skipped_bytes();
  if (skipped_bytes >= core::frame_read_bytes_min) return std::min(skipped_bytes, bytes);
  const std::uint64_t less_bytes =
      std::min(std::max(part_bytes, core::frame_read_bytes_min), bytes);
  if (is_read_on(peer, has_share) || may_wait(peer, less_bytes, part_bytes)) return less_bytes;
  return may_wait(peer, core::frame_read_bytes_min, part_bytes) ? core::frame_read_bytes_min : 0;
}

/// Whether it is read although there is no room: what comes is refused and does not wait, or nobody
/// else could make room for it.
bool Holdings::is_read_on(const Peer& peer, bool has_share) const {
  const bool has_begun_long_frame = waiting_frames_bytes(peer) == 0 && !peer.intake->empty();
  if (!waits(peer) && (!has_share || has_begun_long_frame)) return true;
  return room_.is_empty() && frames_bytes_ == peer.memory.stored_bytes;
}

/// Whether so many bytes more may wait, if each has `part_bytes` of what is free.
bool Holdings::may_wait(const Peer& peer, std::uint64_t more_bytes, std::uint64_t part_bytes) {
  const std::uint64_t allowed_bytes =
      peer.intake->has_spent_its_reserve() ? core::frame_read_bytes_min : core::frame_bytes_allowed;
  const std::uint64_t bytes_max = std::max(allowed_bytes, 8 * part_bytes);
  return waiting_frames_bytes(peer) + more_bytes <= bytes_max;
}

void Holdings::postpone(Peer& peer, std::uint64_t bytes, base::Instant now) {
  peer.postponed.bytes = bytes;
  peer.postponed.since = now;
  postponed_bytes_ += bytes;
  ++counts_.postponed;
  postponed_.append(peer.postponed.link);
}

void Holdings::postpone_reading(Peer& peer, base::Instant now) { postpone(peer, 0, now); }

void Holdings::postpone_no_more(Peer& peer) {
  if (!peer.postponed.link.linked()) return;
  peer.postponed.link.leave();
  postponed_bytes_ -= std::exchange(peer.postponed.bytes, 0);
  --counts_.postponed;
}

bool Holdings::has_room_for(const Peer& peer) const {
  if (peer.postponed.bytes == 0) return readable_bytes(peer, core::frame_read_bytes_min) != 0;
  return room_.has(peer.postponed.bytes, unsent(peer, true));
}

}  // namespace muster::server
