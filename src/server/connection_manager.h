#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/memory/payload.h"
#include "core/session/options.h"
#include "core/session/snapshot.h"
#include "net/channel.h"
#include "server/peer/newcomers.h"
#include "server/peer/peers.h"
#include "server/send_scheduler.h"
#include "server/world.h"

namespace muster::server {

/// Every connection that there is, from its accept to its end, and who may still come.
///
/// A connection's life: accepted -> a newcomer, until it has said its hello -> a peer whose frames
/// are handled -> closed at once, or leaving: it takes its last bytes. There may be so many
/// newcomers and so many that leave; while there are, nobody is accepted, and others wait in the
/// kernel's backlog where they cost nothing.
///
/// Nobody dies inside a turn: whose connection is over is marked, is found by nobody, and stands
/// until `bury`.
class ConnectionManager {
 public:
  ConnectionManager(World& world, const core::Options& options, core::Quota& quota,
                    core::RimCounts& counts, SendScheduler& sender);

  bool is_full() const { return peers_.count() >= limits_.connections_max; }
  /// A newcomer; its connection is not started yet.
  Peer& add(std::shared_ptr<net::Channel> connection, std::string unit, base::Instant now);
  /// It is a newcomer no more.
  void said_hello(Peer& peer);
  const Newcomers& newcomers() const { return newcomers_; }
  const Peers& peers() const { return peers_; }

  /// The connection of the peer is over by itself; is closed now; is closed when it has taken what
  /// was sent.
  void forget(Peer& peer);
  void close(Peer& peer);
  void close_after_flush(Peer& peer);
  /// As the last one, for a connection that never was a peer.
  void send_away(std::shared_ptr<net::Channel> connection);
  void close_all();

  /// Counts those that leave anew, and accepts accordingly.
  void look_at_leaving();
  std::size_t leaving_count() const { return leaving_.size(); }

  /// The turn ends: those that are gone are destroyed.
  void bury() { peers_.bury(); }
  bool has_gone() const { return peers_.has_gone(); }

 private:
  void let_leave(std::shared_ptr<net::Channel> connection);
  void forget_left();
  void control_admission();

  World& world_;
  core::Quota& quota_;
  core::RimCounts& counts_;
  SendScheduler& sender_;
  const core::ConnectionLimits& limits_;
  const FrameLimits frame_limits_;
  Peers peers_;
  Newcomers newcomers_;
  std::vector<std::shared_ptr<net::Channel>> leaving_;  ///< that take their last bytes
};

}  // namespace muster::server
