#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/time.h"
#include "core/memory/chain.h"
#include "core/session/connection.h"
#include "net/channel.h"
#include "server/peer/frame_assembler.h"
#include "server/peer/outbox.h"
#include "wire/hello.h"

namespace muster::server {

struct Peer;

/// What a newcomer has sent of its hello.
struct HelloStage {
  explicit HelloStage(Peer& peer) : place(peer) {}

  std::array<char, wire::client_hello_bytes> bytes;
  std::size_t count = 0;
  base::Instant deadline{};
  core::ChainLink<Peer> place;  ///< among the newcomers, see there
};

/// One connection as the server sees it: first its hello is awaited, then its frames.
///
/// A peer that has to go is marked and stays until the turn ends, so whoever has a reference to it
/// in a turn may go on using it; see ConnectionManager.
struct Peer {
  Peer(core::ConnectionId its_id, std::shared_ptr<net::Channel> its_connection, core::Quota& quota,
       const FrameLimits& limits)
      : id(its_id),
        connection(std::move(its_connection)),
        outbox(*connection),
        frames(quota, limits) {}

  core::ConnectionId id;
  std::shared_ptr<net::Channel> connection;
  Outbox outbox;
  std::unique_ptr<HelloStage> hello;  ///< null: it has been said
  FrameAssembler frames;
  std::string unit;                 ///< whose shares it counts for
  std::string session;              ///< as the log names it; empty: none was begun
  std::string process;              ///< whose it is, as the log names it
  std::uint64_t charged_bytes = 0;  ///< to the quota, for what waits to be sent
  std::uint64_t counted_bytes = 0;  ///< for operators: all that waits to be sent
  std::uint64_t asked_bytes = 0;    ///< that wait because of the frames behind which it was held
  bool is_observer = false;         ///< its coming and going concerns nobody
  bool is_held = false;             ///< its frames wait until it has taken its replies
  bool is_gone = false;             ///< its connection is over; it is buried when the turn ends

  // Places in the lists of SendScheduler.
  core::ChainLink<Peer> dirty{*this};
  core::ChainLink<Peer> continuing{*this};
  core::ChainLink<Peer> slow{*this};
};

/// As the log names it.
inline std::string name_of(const Peer& peer) {
  return peer.connection->peer() + (peer.session.empty() ? "" : ", " + peer.session);
}

}  // namespace muster::server
