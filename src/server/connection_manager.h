#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>

#include "base/time.h"
#include "core/memory/payload.h"
#include "core/session/options.h"
#include "core/session/snapshot.h"
#include "net/address/unit.h"
#include "net/channel.h"
#include "server/door/handshakes.h"
#include "server/peer/newcomers.h"
#include "server/peer/peers.h"
#include "server/peer/units.h"
#include "server/send_scheduler.h"
#include "server/work_scheduler.h"

namespace muster::server {

/// Every connection that there is, from its accept to its end.
///
/// A connection's life: accepted -> a newcomer, until it has said its hello -> a peer whose frames
/// are handled -> closed at once, or leaving: it takes its last bytes. Everybody is accepted at any
/// time: newcomers have the places that no peer has, and some that no peer can have; when all are
/// taken one of the newcomers goes. So a resume, whose session has its place, finds one. Of those
/// that leave only so many are waited for.
///
/// No peer dies inside a turn: whose connection is over is marked, is found by nobody, and stands
/// until `bury`.
class ConnectionManager {
 public:
  /// quota    what frames are charged to before there is a session
  /// replies  what is charged for what was not sent yet
  ConnectionManager(ConnectionEvents& events, const core::Options& options, core::Quota& quota,
                    core::Quota& replies, core::RimCounts& counts, SendScheduler& sender,
                    WorkScheduler& work);
  ~ConnectionManager() { close_leaving(); }

  /// Whose connection counts for the unit.
  Unit& unit(const net::UnitId& id) { return units_.find_or_make(id); }
  Unit& unit(const net::UnitId& id, std::string_view name) { return units_.find_or_make(id, name); }

  /// A newcomer; its connection is not started yet.
  Newcomer& add(std::shared_ptr<net::Channel> connection, Unit& unit, const Arrival& arrival,
                base::Instant now);
  /// What the newcomer is from now on, and for which unit it counts.
  Peer& said_hello(Newcomer& newcomer, Unit& unit);
  const Newcomers& newcomers() const { return newcomers_; }
  Handshakes& handshakes() { return handshakes_; }
  /// One of the newcomers has to go.
  bool are_too_many() const { return newcomers_.count() + peers_.count() > limits_.places(); }
  const Peers& peers() const { return peers_; }

  /// The connection is over by itself; is closed now; is closed when it has taken what was sent.
  void forget(Newcomer& newcomer);
  void close(Newcomer& newcomer);
  void close_after_flush(Newcomer& newcomer);
  void forget(Peer& peer);
  void close(Peer& peer);
  void close_after_flush(Peer& peer);
  void close_all();

  /// From now on any number may leave, and all are waited for.
  void let_all_leave() { is_emptied_ = true; }
  /// Counts those that leave anew.
  void look_at_leaving();
  std::size_t leaving_count() const { return leaving_.size(); }
  /// Waits for none of them any more.
  void close_leaving();

  /// The turn ends: those that are gone are destroyed.
  void bury() { peers_.bury(); }
  bool has_gone() const { return peers_.has_gone(); }

 private:
  /// It takes its last bytes, which stay charged.
  struct Leaving {
    std::shared_ptr<net::Channel> connection;
    std::uint64_t charged_bytes = 0;
  };

  void let_leave(std::shared_ptr<net::Channel> connection);
  void close_first_leaving();
  std::shared_ptr<net::Channel> take(Newcomer& newcomer);

  ConnectionEvents& events_;
  core::Quota& quota_;
  core::Quota& replies_;
  core::RimCounts& counts_;
  SendScheduler& sender_;
  WorkScheduler& work_;
  const core::ConnectionLimits& limits_;
  const FrameLimits frame_limits_;
  Units units_;
  Peers peers_;
  Handshakes handshakes_;
  Newcomers newcomers_;
  std::deque<Leaving> leaving_;
  bool is_emptied_ = false;
};

}  // namespace muster::server
