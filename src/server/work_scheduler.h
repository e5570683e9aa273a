#pragma once

#include <cstddef>
#include <cstdint>

#include "core/memory/chain.h"
#include "core/session/connection_limits.h"
#include "core/session/snapshot.h"
#include "server/peer/budget.h"
#include "server/peer/peer.h"
#include "server/world.h"

namespace muster::server {

/// Whose frames are handled when, so that nobody makes others wait for long.
///
/// In each turn of the loop a connection may do so much work, its unit so much, and all together so
/// much. Who has frames left then waits: units in order, and the connections of each unit in order
/// (deficit round robin: what an event has cost too much is paid in the next turns). While others
/// of its unit wait, nothing is read from a connection, so that it stands behind them; and those
/// who wait have at least half of each turn. While several units have work the turns are shorter.
class WorkScheduler {
 public:
  WorkScheduler(World& world, core::RimCounts& counts, const core::ConnectionLimits& limits)
      : world_(world), counts_(counts), limits_(limits) {}

  /// What was done for the peer; for nobody alone.
  void spend(Peer& peer, std::uint64_t work);
  void spend(std::uint64_t work) { all_.spend(work); }
  void spend_bytes(Peer& peer, std::size_t bytes) { spend(peer, bytes / bytes_per_step); }

  /// Whether the peer's next frame may be handled in this turn.
  bool may_work(Peer& peer);
  /// How much may be read from the peer in this turn; 0: it waits from now on.
  std::size_t readable_bytes(Peer& peer);

  /// The peer stands behind the others of its unit.
  void wait(Peer& peer);
  /// The next one whose turn it is, and who waits no more; null: nobody's in this turn.
  Peer* take_next();
  /// How much of what the engine has put off may be done in a turn, so that it cannot take all of
  /// the next one.
  std::uint32_t backlog_work_max() const {
    return static_cast<std::uint32_t>(part_of(limits_.turn.work_per_turn) / 2);
  }
  bool has_waiting() const { return !units_.empty(); }

  /// The peer waits no more.
  void forget(Peer& peer);

 private:
  static constexpr std::size_t bytes_per_step = 1024;

  std::int64_t left() { return left_of(all_, limits_.turn.work_per_turn); }
  std::int64_t left(Unit& unit) { return left_of(unit.work, limits_.turn.work_per_unit); }
  std::int64_t left(Peer& peer) {
    return left_of(peer.work.budget, limits_.turn.work_per_connection);
  }
  std::int64_t left_of(Budget& budget, std::uint32_t per_turn) const {
    return budget.left(world_.turn(), part_of(per_turn));
  }
  /// Of what may be done in a turn, how much while it is shared as it is now.
  std::int64_t part_of(std::uint32_t per_turn) const {
    return world_.turn() < shared_until_turn_ ? per_turn / limits_.turn.shared_part : per_turn;
  }
  void note(const Unit& unit);
  bool is_behind_others(const Peer& peer);
  Peer* take_next_of(Unit& unit);

  World& world_;
  core::RimCounts& counts_;
  const core::ConnectionLimits& limits_;
  Budget all_;
  core::Chain<Unit> units_;  ///< of which somebody waits
  std::size_t units_count_ = 0;
  const Unit* last_unit_ = nullptr;  ///< which had work; it may be gone
  std::uint64_t shared_until_turn_ = 0;
};

}  // namespace muster::server
