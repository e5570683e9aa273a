#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/engine.h"
#include "net/address/unit.h"
#include "net/channel.h"
#include "server/connection_handler.h"
#include "server/connection_manager.h"
#include "server/door/entrance.h"
#include "server/engine_driver.h"
#include "server/frame_reader.h"
#include "server/heap_trimmer.h"
#include "server/lateness.h"
#include "server/send_scheduler.h"
#include "server/server_log.h"
#include "server/settings.h"
#include "server/stopping.h"
#include "server/watch/keeper.h"
#include "server/work_scheduler.h"
#include "server/world.h"

namespace muster::server {

/// The rim of the engine: turns bytes, ends of connections and the clock into its events, and its
/// effects into bytes and closed connections. Knows no sockets; used on one thread only.
///
/// Everything happens in turns. A turn begins with what the world reports: a newcomer, bytes, a
/// connection that has drained or ended, the clock. It ends when everything that came of it has
/// been queued: then the replies leave, and those who have to go are destroyed.
class Service final : private ConnectionHandler::Turns {
 public:
  /// The world outlives the service.
  Service(World& world, Settings settings);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  const Settings& settings() const { return settings_; }
  ServerLog& log() { return log_; }
  bool is_closed() const { return state_ != State::serving; }
  /// What a newcomer who comes in that way is told when there is no descriptor for it.
  std::string farewell(Arrival::Kind kind) const;

  // What the world calls. Before the first `tick` nothing else.

  void tick();
  void continue_turn();
  void accepted(std::shared_ptr<net::Channel> connection, const net::UnitId& unit,
                const Arrival& arrival = {});
  /// Gives up the descriptor of a newcomer; false: there is none.
  bool make_room();
  /// Ends it at once: something was thrown in the midst of its work, which cannot be trusted now.
  void fail(std::string_view why);

  // What its owner calls.

  /// From now on others are known, or other things of them: those who are there are judged anew.
  RollChange change_credentials(Door::Version version);
  /// Changes settings, as core::Configure.
  void configure(const core::Configure& event);
  /// Waits until at most `own_sessions` are left, for `timeout` at most, and then for as long as
  /// the clients take to hear `reason`.
  ///
  /// done  runs once, with the number of sessions of others that were left
  void stop(std::string reason, Duration timeout, std::uint64_t own_sessions, Stopping::Done done);
  /// The same without any waiting: what the sockets take at once is what the clients hear.
  ///
  /// returns  the number of sessions of others that were left
  std::uint64_t stop_now(const std::string& reason, std::uint64_t own_sessions);

 private:
  enum class State { serving, failing, closed };  ///< failing: what it holds is not released yet

  void begin_turn() override;
  void end_turn() override;
  void do_backlog();
  void note_memory();
  void set_timer();

  void continue_stopping();
  void close_everything();
  void release_everything();

  World& world_;
  Lateness lateness_;
  const Settings settings_;
  ServerLog log_;
  core::Engine engine_;
  Holdings holdings_;
  SendScheduler sender_;
  WorkScheduler work_;
  ConnectionManager connections_;
  EngineDriver driver_;
  Entrance entrance_;
  FrameReader frames_;
  ConnectionHandler handler_;
  Stopping stopping_;
  WatchKeeper watch_;
  HeapTrimmer heap_;

  base::Instant next_tick_ = base::far_future;
  base::Instant last_tick_{};
  bool sessions_may_have_ended_ = false;
  State state_ = State::serving;
};

}  // namespace muster::server
