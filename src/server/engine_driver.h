#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "core/engine.h"
#include "server/connection_manager.h"
#include "server/send_scheduler.h"
#include "server/server_log.h"
#include "server/settings.h"
#include "wire/frame.h"

namespace muster::server {

/// Gives events to the engine, with the time of the turn, and turns its effects into bytes and
/// closed connections.
class EngineDriver {
 public:
  EngineDriver(core::Engine& engine, const Settings& settings, ConnectionManager& connections,
               SendScheduler& sender, Holdings& holdings, ServerLog& log);

  /// A turn begins: everything in it happens now.
  void begin_turn(base::Instant now) { now_ = now; }
  base::Instant now() const { return now_; }
  core::RimCounts& counts() { return engine_.inspector().rim_counts(); }
  /// What all events together have cost so far, in steps of the engine.
  std::uint64_t work() const { return work_; }

  /// Any event may end any connection; see ConnectionManager.
  void apply(const core::Event& event);
  /// What the reply to a request would have taken, which has to come again; 0: the last event was
  /// none, or has been carried out.
  std::uint64_t postponed_bytes() const { return postponed_bytes_; }

  /// The peer's request was postponed: lets others go for it who take nothing of what they are
  /// sent, or who have most, if it has waited for long. It may go itself.
  void make_room_for(Peer& peer);

  /// Refuses the request of that header as the engine would have done.
  void reply_error(Peer& peer, const wire::FrameHeader& request, const Error& error);
  void send_event(Peer& peer, wire::EventKind kind, std::string_view body);

  /// Ends the connections of peers that have taken nothing for too long.
  void let_slow_go();
  /// Ends those of peers for whom more waits than there is memory for, and tells of all that ended.
  void end_turn();

 private:
  void apply_one(const core::Event& event);
  void keep_within_memory();
  void tell_of_lost();
  void let_go(Peer& peer, const std::string& why);
  void lose(Peer& peer, const std::string& why);
  void carry_out(core::SendHello& effect);
  void carry_out(core::SendReply& effect);
  void carry_out(core::SendEvent& effect);
  void carry_out(core::SendHeartbeatReply& effect);
  void carry_out(core::SendGoodbye& effect);
  void carry_out(core::Close& effect);
  void carry_out(core::Log& effect);
  void carry_out(core::ForHost& effect);
  void carry_out(core::Postpone& effect) { postponed_bytes_ = effect.bytes; }
  void send_reply(Peer& peer, core::SendReply& effect);
  void send(Peer& peer, wire::FrameHeader header, std::string_view body);

  core::Engine& engine_;
  const Settings& settings_;
  ConnectionManager& connections_;
  SendScheduler& sender_;
  Holdings& holdings_;
  ServerLog& log_;
  base::Instant now_{};
  std::string scratch_;  ///< keeps its memory
  std::uint64_t work_ = 0;
  std::uint64_t postponed_bytes_ = 0;
  struct Lost {
    core::ConnectionId id = 0;
    std::string refused;  ///< as in core::Disconnected
  };
  std::vector<Lost> lost_;  ///< let go, and the engine is yet to be told
  bool was_short_ = false;
};

}  // namespace muster::server
