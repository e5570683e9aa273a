#pragma once

#include "server/engine_driver.h"
#include "server/peer/holdings.h"
#include "server/send_scheduler.h"
#include "server/tcpstore/conversation.h"
#include "server/work_scheduler.h"

namespace muster::server::tcpstore {

/// Requests of guests to events of the engine, one request at a time. When and whether one is
/// read, FrameReader decides, as of all peers.
class GuestReader {
 public:
  GuestReader(EngineDriver& driver, SendScheduler& sender, WorkScheduler& work,
              const Holdings& holdings)
      : driver_(driver), sender_(sender), work_(work), holdings_(holdings) {}

  enum class Read {
    nothing,     ///< more has to come
    handled,     ///< or the peer is gone
    postponed,   ///< it has to come again when there is room for its answer
    unfinished,  ///< it has to come again in another turn
  };
  /// Handles the peer's next request, or goes on with it.
  ///
  /// has_waited  it was postponed, and for longest
  /// errors      the connection has to end
  Result<Read> read(Peer& peer, bool has_waited);

 private:
  void carry_out(Peer& peer, bool has_waited);
  bool is_for_nobody(const Peer& peer) const;

  EngineDriver& driver_;
  SendScheduler& sender_;
  WorkScheduler& work_;
  const Holdings& holdings_;
  Request request_;  ///< in hand; both keep their memory
  Conversation::Step step_;
};

}  // namespace muster::server::tcpstore
