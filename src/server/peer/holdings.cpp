#include "server/peer/holdings.h"

#include <algorithm>
#include <utility>

#include "core/memory/frame_charging.h"
#include "wire/frame.h"

namespace muster::server {

void Weights::put(Peer& peer, std::uint64_t bytes) {
  const std::uint64_t before_bytes = std::exchange(peer.weight_bytes, bytes);
  if (std::bit_width(bytes) == std::bit_width(before_bytes)) return;
  peer.by_weight.leave();
  if (before_bytes != 0 && chains_[class_of(before_bytes)].empty()) {
    used_ &= ~(std::uint64_t{1} << class_of(before_bytes));
  }
  if (bytes == 0) return;
  chains_[class_of(bytes)].append(peer.by_weight);
  used_ |= std::uint64_t{1} << class_of(bytes);
}

/// Whether frames that have come from the peer are not handled yet, although they are complete.
bool Holdings::waits(const Peer& peer) {
  return peer.is_held || peer.in_unit.linked() || peer.postponed_bytes != 0;
}

/// A long frame that is under way is charged as what it brings, and refused when there is no room.
std::uint64_t Holdings::waiting_frames_bytes(const Peer& peer) {
  const std::uint64_t stored_bytes = peer.frames.stored_bytes();
  const bool is_short = stored_bytes <= core::freeing_body_bytes_always + wire::frame_header_bytes;
  return waits(peer) || is_short ? stored_bytes : 0;
}

void Holdings::weigh(Peer& peer) {
  const std::uint64_t stored_bytes = waiting_frames_bytes(peer);
  frames_bytes_ += stored_bytes - std::exchange(peer.stored_bytes, stored_bytes);
  weights_.put(peer, peer.outbox.own_bytes() + stored_bytes);
}

void Holdings::forget(Peer& peer) {
  frames_bytes_ -= std::exchange(peer.stored_bytes, 0);
  weights_.put(peer, 0);
  postpone_no_more(peer);
}

/// To who has less than its share all that is asked for; else a small part of what is free, so that
/// many who send at once leave something; nothing of it to who has its share: of that one little is
/// read at once, and what is too much of it is refused when it has come. Who is alone is read on in
/// any case: nobody could make room for it.
std::uint64_t Holdings::readable_bytes(const Peer& peer, std::uint64_t bytes) const {
  if (peer.frames.is_within_share(bytes)) return bytes;
  const bool has_share = peer.frames.has_share(bytes);
  const std::uint64_t part_bytes = has_share ? room_.free_bytes(frames_bytes_) / 16 : 0;
  if (part_bytes >= bytes) return bytes;
  const std::uint64_t skipped_bytes = peer.frames.skipped_bytes();
  if (skipped_bytes >= core::frame_read_bytes_min) return std::min(skipped_bytes, bytes);
  const std::uint64_t stored_bytes = waiting_frames_bytes(peer);
  const bool is_upload =
      !waits(peer) && (!has_share || (stored_bytes == 0 && !peer.frames.empty()));
  const bool is_alone = room_.is_empty() && frames_bytes_ == peer.stored_bytes;
  const auto has_room = [&](std::uint64_t more_bytes) {
    return is_upload || is_alone || stored_bytes + more_bytes <= core::frame_bytes_allowed ||
           stored_bytes + more_bytes <= 8 * part_bytes;
  };
  const std::uint64_t less_bytes =
      std::min(std::max(part_bytes, core::frame_read_bytes_min), bytes);
  if (has_room(less_bytes)) return less_bytes;
  return has_room(core::frame_read_bytes_min) ? core::frame_read_bytes_min : 0;
}

void Holdings::postpone(Peer& peer, std::uint64_t bytes, base::Instant now) {
  peer.postponed_bytes = bytes;
  peer.postponed_since = now;
  postponed_bytes_ += bytes;
  ++counts_.postponed;
  postponed_.append(peer.in_postponed);
}

void Holdings::postpone_reading(Peer& peer, base::Instant now) { postpone(peer, 0, now); }

void Holdings::postpone_no_more(Peer& peer) {
  if (!peer.in_postponed.linked()) return;
  peer.in_postponed.leave();
  postponed_bytes_ -= std::exchange(peer.postponed_bytes, 0);
  --counts_.postponed;
}

bool Holdings::has_room_for(const Peer& peer) const {
  if (peer.postponed_bytes == 0) return readable_bytes(peer, core::frame_read_bytes_min) != 0;
  return room_.has(peer.postponed_bytes, unsent(peer, true));
}

}  // namespace muster::server
