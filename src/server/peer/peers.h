#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/peer/peer.h"

namespace muster::server {

/// The peers by their connection's id, which is never used twice and leads to its place.
class Peers {
 public:
  Peer& add(ConnectionEvents& events, std::shared_ptr<net::Channel> connection, UnitPlace unit,
            core::Quota& quota, const FrameLimits& limits);

  /// Nobody finds the peer any more; it stands until `bury`.
  void mark_gone(Peer& peer);
  void bury() { gone_.clear(); }
  bool has_gone() const { return !gone_.empty(); }

  /// Null: there is none, or it is gone.
  Peer* find(core::ConnectionId id) const {
    const std::size_t place = core::place_of(id);
    if (place >= places_.size()) return nullptr;
    Peer* const peer = places_[place].get();
    return peer != nullptr && peer->id == id ? peer : nullptr;
  }

  std::size_t count() const { return count_; }
  /// Those that are not gone.
  std::vector<Peer*> all() const;

 private:
  std::vector<std::unique_ptr<Peer>> places_;
  std::vector<std::size_t> free_places_;
  std::vector<std::unique_ptr<Peer>> gone_;
  std::uint64_t serial_ = 1;
  std::size_t count_ = 0;
};

}  // namespace muster::server
