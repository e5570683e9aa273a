#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"
#include "core/memory/chain.h"
#include "core/session/connection.h"
#include "net/channel.h"
#include "server/peer/budget.h"
#include "server/peer/connection_events.h"
#include "server/peer/frame_assembler.h"
#include "server/peer/outbox.h"
#include "server/peer/units.h"
#include "server/tcpstore/guest.h"
#include "server/tcpstore/port.h"

namespace muster::server {

struct Peer;

/// What WorkScheduler keeps with a peer.
struct PeerWork {
  explicit PeerWork(Peer& peer) : in_unit(peer) {}

  Budget budget;
  core::ChainLink<Peer> in_unit;  ///< among those of its unit that wait
  bool has_turn = false;          ///< to be read once, whatever was done meanwhile
};

/// What SendScheduler keeps with a peer: its unsent bytes, and its places in the lists.
struct PeerSending {
  explicit PeerSending(Peer& peer) : dirty(peer), continuing(peer), slow(peer) {}

  std::uint64_t charged_bytes = 0;  ///< to the quota, for unsent bytes
  std::uint64_t counted_bytes = 0;  ///< for operators: all unsent bytes
  std::uint64_t asked_bytes = 0;    ///< unsent because of the frames behind which it was held
  core::ChainLink<Peer> dirty;
  core::ChainLink<Peer> continuing;
  core::ChainLink<Peer> slow;
  bool is_next = false;  ///< its turn to be sent long replies has come
};

/// What Holdings keeps with a peer: the memory that is held for it.
struct PeerMemory {
  explicit PeerMemory(Peer& peer) : by_weight(peer) {}

  std::uint64_t weight_bytes = 0;  ///< held for it alone
  std::uint64_t stored_bytes = 0;  ///< of its frames that wait, as they were counted
  core::ChainLink<Peer> by_weight;
};

/// A peer's request that waits until there is room for its reply, or reading that waits until there
/// is room for the rest of a frame. Holdings keeps it with the peer.
struct Postponement {
  explicit Postponement(Peer& peer) : link(peer) {}

  std::uint64_t bytes = 0;  ///< of the reply for which there was no room; 0: no request waits
  base::Instant since{};
  core::ChainLink<Peer> link;
};

/// One connection as the server sees it, from its hello on.
///
/// A peer that has to go is marked and stays until the turn ends, so whoever has a reference to it
/// in a turn may go on using it; see ConnectionManager.
struct Peer final : net::ChannelOwner {
  Peer(core::ConnectionId its_id, ConnectionEvents& its_events,
       std::shared_ptr<net::Channel> its_connection, UnitPlace its_unit, core::Quota& quota,
       const FrameLimits& limits)
      : id(its_id),
        events(its_events),
        connection(std::move(its_connection)),
        unit(std::move(its_unit)),
        outbox(*connection),
        frames(quota, limits) {}

  /// It speaks TCPStore's protocol. Nothing was read from it yet.
  void receive(const tcpstore::Port& port) {
    guest = std::make_unique<tcpstore::Guest>(frames.quota(), port.fallback, port.limits);
    intake = &guest->requests;
  }

  /// Its session's quota, to which its frames are charged from now on, and what its channel has.
  void charge_to(core::Quota& quota) {
    release_channel();
    intake->charge_to(quota);
    if (guest != nullptr) guest->conversation.charge_to(quota);
    is_channel_charged = true;
    charge_channel();
  }
  /// The channel's own memory has changed.
  void charge_channel() {
    const std::uint64_t bytes = is_channel_charged ? connection->own_bytes() : 0;
    if (bytes == channel_bytes) return;
    intake->quota().charge_always(bytes);
    intake->quota().release(std::exchange(channel_bytes, bytes));
  }
  void release_channel() {
    is_channel_charged = false;
    charge_channel();
  }

  void received(std::string_view bytes) override { events.received(*this, bytes); }
  void kept() override { charge_channel(); }
  void closed(net::CloseCause cause, std::string detail) override {
    events.closed(*this, cause, detail);
  }
  void drained() override { events.drained(*this); }
  std::size_t readable_bytes() override { return events.readable_bytes(*this); }

  core::ConnectionId id;
  ConnectionEvents& events;
  std::shared_ptr<net::Channel> connection;
  UnitPlace unit;
  Outbox outbox;
  FrameAssembler frames;
  std::unique_ptr<tcpstore::Guest> guest;  ///< null: it is a client of Muster
  Intake* intake = &frames;                ///< of whichever it is
  std::string session;                     ///< as the log names it; empty: none was begun
  std::string process;                     ///< whose it is, as the log names it
  bool is_observer = false;                ///< its coming and going concerns nobody
  bool is_held = false;                    ///< its frames wait until it has taken its replies
  bool is_channel_charged = false;
  std::uint64_t channel_bytes = 0;  ///< charged for its channel
  bool is_gone = false;             ///< its connection is over; it is buried when the turn ends

  /// It is over, but the last frames have not had their turn yet.
  struct End {
    net::CloseCause cause;
    std::string detail;
  };
  std::unique_ptr<End> end;

  PeerWork work{*this};
  PeerSending sending{*this};
  PeerMemory memory{*this};
  Postponement postponed{*this};
};

/// As the log names it.
inline std::string name_of(const Peer& peer) {
  return peer.connection->peer() + (peer.session.empty() ? "" : ", " + peer.session);
}

}  // namespace muster::server
