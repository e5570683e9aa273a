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
/// who wait have at least half of each turn.
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
  bool has_waiting() const { return !units_.empty(); }

  /// The peer waits no more.
  void forget(Peer& peer);

 private:
  static constexpr std::size_t bytes_per_step = 4096;

  std::int64_t left() { return all_.left(world_.turn(), limits_.work_per_turn); }
  std::int64_t left(Unit& unit) { return unit.work.left(world_.turn(), limits_.work_per_unit); }
  std::int64_t left(Peer& peer) {
    return peer.work.left(world_.turn(), limits_.work_per_connection);
  }
  bool is_behind_others(const Peer& peer);
  Peer* take_next_of(Unit& unit);

  World& world_;
  core::RimCounts& counts_;
  const core::ConnectionLimits& limits_;
  Budget all_;
  core::Chain<Unit> units_;  ///< of which somebody waits
  std::size_t units_count_ = 0;
};

}  // namespace muster::server
