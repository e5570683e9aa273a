#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/address/unit.h"
#include "net/channel.h"
#include "server/connection_manager.h"
#include "server/door/entrance.h"
#include "server/engine_driver.h"
#include "server/frame_reader.h"
#include "server/hello_reader.h"
#include "server/peer/connection_events.h"
#include "server/server_log.h"
#include "server/work_scheduler.h"

namespace muster::server {

/// What happens to connections, each event in a turn of the service.
class ConnectionHandler final : public ConnectionEvents {
 public:
  class Turns {
   public:
    virtual void begin_turn() = 0;
    virtual void end_turn() = 0;

   protected:
    ~Turns() = default;
  };

  ConnectionHandler(Turns& turns, EngineDriver& driver, ConnectionManager& connections,
                    Entrance& entrance, FrameReader& frames, WorkScheduler& work, ServerLog& log)
      : turns_(turns),
        driver_(driver),
        connections_(connections),
        entrance_(entrance),
        hellos_(entrance.hellos()),
        frames_(frames),
        work_(work),
        log_(log) {}

  void accepted(std::shared_ptr<net::Channel> connection, const net::UnitId& unit_id,
                const Arrival& arrival);

  /// Goes on with peers that wait for their turn, as far as this one allows.
  ///
  /// returns  those that have no frames left: afterwards something may be read from them
  std::vector<core::ConnectionId> handle_waiting();
  /// Not in a turn.
  void read(core::ConnectionId id);

 private:
  void received(Newcomer& newcomer, std::string_view bytes) override;
  void closed(Newcomer& newcomer, net::CloseCause cause, const std::string& detail) override;
  void received(Peer& peer, std::string_view bytes) override;
  void closed(Peer& peer, net::CloseCause cause, const std::string& detail) override;
  void drained(Peer& peer) override;
  std::size_t readable_bytes(Peer& peer) override { return frames_.readable_bytes(peer); }
  void end(Peer& peer);

  Turns& turns_;
  EngineDriver& driver_;
  ConnectionManager& connections_;
  Entrance& entrance_;
  HelloReader& hellos_;
  FrameReader& frames_;
  WorkScheduler& work_;
  ServerLog& log_;
};

}  // namespace muster::server
