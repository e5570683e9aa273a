#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/engine.h"
#include "net/connection.h"
#include "server/frame_assembler.h"
#include "server/outbox.h"
#include "wire/hello.h"

namespace muster::server {

/// What a newcomer has sent of its hello.
struct HelloStage {
  std::array<char, wire::client_hello_bytes> bytes;
  std::size_t count = 0;
  base::Instant deadline{};
  std::string counted_host;  ///< of which there may be so many newcomers; empty: not counted
};

/// One connection as the server sees it: first its hello is awaited, then its frames.
struct Peer {
  Peer(core::ConnectionId its_id, std::shared_ptr<net::Connection> its_connection,
       core::Quota& quota, const FrameLimits& limits)
      : id(its_id),
        connection(std::move(its_connection)),
        outbox(*connection),
        frames(quota, limits) {}

  core::ConnectionId id;
  std::shared_ptr<net::Connection> connection;
  Outbox outbox;
  std::unique_ptr<HelloStage> hello;  ///< null: it has been said
  FrameAssembler frames;
  std::string session;              ///< as the log names it; empty: none was begun
  std::string process;              ///< whose it is, as the log names it
  std::uint64_t charged_bytes = 0;  ///< to the quota, for what waits to be sent
  bool is_dirty = false;            ///< something was queued in this turn
  bool is_slow = false;             ///< stands in the list of those that do not take all
  bool is_held = false;             ///< its frames wait until it has taken its replies
  std::uint64_t asked_bytes = 0;    ///< that wait because of the frames behind which it was held
};

/// The peers by their connection's id, which is never used twice and leads to its place.
class Peers {
 public:
  /// The id that the next peer must have.
  core::ConnectionId next_id() const;
  Peer& add(std::unique_ptr<Peer> peer);
  std::unique_ptr<Peer> remove(core::ConnectionId id);

  Peer* find(core::ConnectionId id) const {
    const std::size_t place = id & place_mask;
    if (place >= places_.size()) return nullptr;
    Peer* const peer = places_[place].get();
    return peer != nullptr && peer->id == id ? peer : nullptr;
  }

  std::size_t count() const { return count_; }
  std::vector<core::ConnectionId> ids() const;

 private:
  static constexpr int place_bits = 24;
  static constexpr core::ConnectionId place_mask = (core::ConnectionId{1} << place_bits) - 1;

  std::vector<std::unique_ptr<Peer>> places_;
  std::vector<std::size_t> free_places_;
  std::uint64_t serial_ = 1;
  std::size_t count_ = 0;
};

}  // namespace muster::server
