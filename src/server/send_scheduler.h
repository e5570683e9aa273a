#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.h"
#include "core/memory/chain.h"
#include "core/memory/payload.h"
#include "core/session/connection_limits.h"
#include "core/session/snapshot.h"
#include "server/peer/budget.h"
#include "server/peer/holdings.h"
#include "server/peer/peer.h"
#include "server/world.h"

namespace muster::server {

/// When each peer is written to, what its unsent bytes cost, and who takes too little.
///
/// Replies of one turn are queued first and leave together: who got something is written to once,
/// in the order in which they got it, when the turn ends, or when so many have got something that
/// the first of them would leave the caches. Of long replies so much leaves in a turn, whoever they
/// are for; peers get it in order, so that each write is of many bytes, and nobody waits for long:
/// neither others for the turn, nor one who downloads for its next piece. What a socket does not
/// take is charged to the quota and follows when the peer takes more.
class SendScheduler {
 public:
  /// replies  what is charged for what was copied and waits
  SendScheduler(World& world, core::Quota& replies, Holdings& holdings, core::RimCounts& counts,
                const core::ConnectionLimits& limits)
      : world_(world), replies_(replies), holdings_(holdings), counts_(counts), limits_(limits) {}

  /// Something was queued for the peer, of which so much was copied and is not charged.
  void mark_dirty(Peer& peer, std::uint64_t copied_bytes = 0);
  /// Writes to all who got something, or to so many that it is enough for this turn: the others
  /// follow in the next one. At once when they are many, for `flush_if_many`.
  void flush();
  ///
  /// returns  whether they were
  bool flush_if_many() {
    if (dirty_count_ < flushed_together_max) return false;
    flush();
    return true;
  }

  /// Charges what waits to be sent, and sees whether the peer takes it.
  void look_at_unsent(Peer& peer);
  /// Whether so much waits for the peer that its frames have to wait, too.
  bool is_behind(Peer& peer);
  /// Its frames wait from now on. What waited before they were handled, it has not asked for with
  /// them.
  void hold(Peer& peer, std::uint64_t before_bytes);
  void release(Peer& peer);

  /// Those for whom more is to be sent now that the others had their turn, as many as a turn may
  /// write to.
  std::vector<Peer*> take_continuing();

  /// Calls `let_go(peer, why)` for each peer that has taken nothing for too long.
  template <class LetGo>
  void judge_slow(base::Instant now, const LetGo& let_go);

  /// The peer's connection is over: it is in no list, and nothing of it is charged.
  void forget(Peer& peer);

 private:
  static constexpr std::size_t flushed_together_max =
      32;  // what they were sent is in a cache still

  static constexpr std::uint64_t steps_per_write = 4;
  static constexpr std::uint64_t bytes_per_step = 16 * 1024;
  /// Of long replies, to all together.
  static constexpr std::uint64_t long_bytes_per_turn = 4 * 1024 * 1024;

  std::int64_t steps_per_turn() const {
    return static_cast<std::int64_t>(steps_per_write * limits_.turn.writes_per_turn);
  }
  std::int64_t left_steps() { return written_.left(world_.turn(), steps_per_turn()); }
  bool may_write() { return left_steps() > 0; }
  std::uint64_t long_bytes_for(const Peer& peer);
  bool write(Peer& peer);
  void continue_soon(Peer& peer, core::Chain<Peer>& behind);
  void charge_unsent(Peer& peer);
  bool has_to_wait(const Peer& peer) const {
    return limits_.holds(peer.outbox.waiting_bytes(), peer.outbox.replies_count(),
                         peer.outbox.own_bytes(), peer.is_held, holdings_.room());
  }
  void enlist(Peer& peer);
  void delist(Peer& peer);

  World& world_;
  core::Quota& replies_;
  Holdings& holdings_;
  core::RimCounts& counts_;
  const core::ConnectionLimits& limits_;
  core::Chain<Peer> dirty_;       ///< something was queued in this turn
  core::Chain<Peer> waiting_;     ///< for their piece of a long reply: first in the next turn
  core::Chain<Peer> continuing_;  ///< have had theirs, and follow behind these
  core::Chain<Peer> slow_;        ///< something waits for them to take it
  std::size_t dirty_count_ = 0;
  Budget written_;
};

template <class LetGo>
void SendScheduler::judge_slow(base::Instant now, const LetGo& let_go) {
  core::Chain<Peer> slow;
  slow.append_all(slow_);
  while (!slow.empty()) {
    Peer& peer = slow.first();
    delist(peer);
    const base::Instant since = peer.connection->stalled_since();
    if (since == base::far_future) continue;
    const bool has_too_much =
        limits_.is_overfull(peer.outbox.waiting_bytes(), peer.sending.asked_bytes);
    const core::SlowPeer judged = limits_.judge(now - since, has_too_much, holdings_.room());
    if (judged == core::SlowPeer::may_stay) {
      enlist(peer);
    } else {
      let_go(peer, judged);
    }
  }
}

}  // namespace muster::server
