#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "server/connection_manager.h"
#include "server/engine_driver.h"
#include "server/send_scheduler.h"
#include "server/server_log.h"
#include "server/tcpstore/guest_reader.h"
#include "server/work_scheduler.h"
#include "wire/frame.h"
#include "wire/request.h"

namespace muster::server {

/// Bytes of peers to events of the engine. Every complete frame that the bytes hold is handled, and
/// of guests every request.
///
/// A peer that asks faster than it takes the answers is held: its frames wait, stored, until little
/// is queued behind the reply that is being sent. One large reply alone holds nothing up: a rank
/// may pass barriers while it downloads. Bytes are read meanwhile, since they prove that it lives,
/// but only so many. One whose share of a turn is used up waits for another one: nothing is read
/// until then. Nor is one read whose request was postponed, until there is room for the reply.
class FrameReader {
 public:
  FrameReader(EngineDriver& driver, ConnectionManager& connections, SendScheduler& sender,
              WorkScheduler& work, Holdings& holdings, ServerLog& log,
              const core::ConnectionLimits& limits)
      : driver_(driver),
        connections_(connections),
        sender_(sender),
        work_(work),
        holdings_(holdings),
        log_(log),
        limits_(limits),
        guests_(driver, sender, work, holdings) {}

  void received(Peer& peer, std::string_view bytes);
  /// What came behind the hello; it proves nothing that the hello does not.
  void received_behind_hello(Peer& peer, std::string_view bytes);
  void drained(Peer& peer);
  /// With a peer that takes its replies: parts of a long one may follow, and its frames that wait.
  void go_on(Peer& peer);
  /// How much may be read from the peer; 0: nothing, until it is its turn, or there is room.
  std::size_t readable_bytes(Peer& peer);
  /// Whether `continue_postponed` would do anything.
  bool may_continue_postponed() const;
  /// With peers whose requests had to wait for room, in their order, as far as there is room now.
  void continue_postponed();
  /// With the frames of a peer that has waited for its turn.
  ///
  /// returns  whether there are none left
  bool take_turn(Peer& peer);

 private:
  /// What has become of what was to be read next.
  enum class Cut { nothing, handled, postponed };

  bool cut_frames(Peer& peer);
  Cut cut_frame(Peer& peer);
  Cut cut_request(Peer& peer);
  static bool has_part_only(const Peer& peer);
  void hold(Peer& peer, std::uint64_t before_bytes);
  void postpone(Peer& peer, std::uint64_t bytes);
  void wait_for_turn(Peer& peer);
  void handle_stored(Peer& peer);
  void handle_in_turn(Peer& peer, const FrameAssembler::Next& next);
  void handle(Peer& peer, const wire::Frame& frame, core::ChargedMemory* memory);
  void handle_request(Peer& peer, const wire::Frame& frame, core::ChargedMemory* memory);
  void handle_echo(Peer& peer, const wire::Frame& frame);
  void handle_unstorable(Peer& peer, const FrameAssembler::Unstorable& frame);
  void refuse(Peer& peer, const wire::FrameHeader& header, Error why);
  void break_off(Peer& peer, const Error& why);

  EngineDriver& driver_;
  ConnectionManager& connections_;
  SendScheduler& sender_;
  WorkScheduler& work_;
  Holdings& holdings_;
  ServerLog& log_;
  const core::ConnectionLimits& limits_;
  tcpstore::GuestReader guests_;
  bool was_postponed_ = false;  ///< the request in hand, and is the first that waits
  wire::Request request_;       ///< in hand; both keep their memory
  std::vector<std::uint64_t> request_ids_;
};

}  // namespace muster::server
