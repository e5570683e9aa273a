#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "core/memory/chain.h"
#include "core/memory/server_memory.h"
#include "core/session/snapshot.h"
#include "server/peer/peer.h"

namespace muster::server {

/// The peers by the bytes that are held for each alone: in classes, each of which begins at twice
/// the bytes of the one before, so that one of those with most is found at once.
class Weights {
 public:
  void put(Peer& peer, std::uint64_t bytes);

  /// Nobody has twice as much. Null: nothing is held for anybody.
  Peer* heaviest() const { return used_ == 0 ? nullptr : &chains_[class_of(used_)].first(); }

 private:
  /// Of a number that is not 0.
  static std::size_t class_of(std::uint64_t bytes) {
    return static_cast<std::size_t>(std::bit_width(bytes)) - 1;
  }

  std::array<core::Chain<Peer>, 64> chains_;
  std::uint64_t used_ = 0;  ///< bit i: chain i is not empty
};

/// What is held for peers: replies that they have not taken, frames that wait. And who waits until
/// there is room for more, in the order in which they came.
class Holdings {
 public:
  Holdings(const core::ReplyRoom& room, core::RimCounts& counts) : room_(room), counts_(counts) {}

  /// Counts anew what is held for the peer alone.
  void weigh(Peer& peer);
  /// The peer's connection is over.
  void forget(Peer& peer);
  /// One of those for whom most is held; null: nothing is.
  Peer* heaviest() const { return weights_.heaviest(); }

  const core::ReplyRoom& room() const { return room_; }
  /// So much was copied to be sent, and is not charged yet; all is.
  void has_copied(std::uint64_t bytes) { uncharged_bytes_ += bytes; }
  void has_charged_all() { uncharged_bytes_ = 0; }
  /// What waits when the peer asks for something. `is_first`: it has waited itself, for longest.
  core::UnsentReplies unsent(const Peer& peer, bool is_first) const {
    return {peer.outbox.own_bytes(), uncharged_bytes_, is_first ? 0 : postponed_bytes_,
            frames_bytes_};
  }
  /// Of `bytes` that might be read from the peer, how many may be stored if they have to wait; 0:
  /// there is no room for more than it has there already.
  std::uint64_t readable_bytes(const Peer& peer, std::uint64_t bytes) const;

  /// The peer's next request has to come again, when so many bytes are free for its reply; or
  /// nothing is read from it until there is room for more of its frame.
  void postpone(Peer& peer, std::uint64_t bytes, base::Instant now);
  void postpone_reading(Peer& peer, base::Instant now);
  void postpone_no_more(Peer& peer);
  /// Who has waited for longest; null: nobody waits.
  Peer* first_postponed() const { return postponed_.empty() ? nullptr : &postponed_.first(); }
  std::uint64_t postponed_count() const { return counts_.postponed; }
  /// Whether the peer, which is the first, need not wait any longer.
  bool has_room_for(const Peer& peer) const;

 private:
  static bool waits(const Peer& peer);
  static std::uint64_t waiting_frames_bytes(const Peer& peer);
  static bool may_wait(const Peer& peer, std::uint64_t more_bytes, std::uint64_t part_bytes);
  bool is_read_on(const Peer& peer, bool has_share) const;

  const core::ReplyRoom& room_;
  core::RimCounts& counts_;
  Weights weights_;
  std::uint64_t uncharged_bytes_ = 0;  ///< at most
  std::uint64_t frames_bytes_ = 0;     ///< that are stored and wait, of all
  core::Chain<Peer> postponed_;
  std::uint64_t postponed_bytes_ = 0;  ///< that their replies will take
};

}  // namespace muster::server
