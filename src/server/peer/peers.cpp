#include "server/peer/peers.h"

#include <utility>

namespace muster::server {

Peer& Peers::add(ConnectionEvents& events, std::shared_ptr<net::Channel> connection, UnitPlace unit,
                 core::Quota& quota, const FrameLimits& limits) {
  const std::size_t place = free_places_.empty() ? places_.size() : free_places_.back();
  const core::ConnectionId id = serial_ << core::connection_place_bits | place;
  auto peer =
      std::make_unique<Peer>(id, events, std::move(connection), std::move(unit), quota, limits);
  if (free_places_.empty()) {
    places_.emplace_back();
  } else {
    free_places_.pop_back();
  }
  ++serial_;
  ++count_;
  places_[place] = std::move(peer);
  return *places_[place];
}

void Peers::mark_gone(Peer& peer) {
  const std::size_t place = core::place_of(peer.id);
  gone_.emplace_back();  // before anything changes: memory may be out
  free_places_.push_back(place);
  gone_.back() = std::move(places_[place]);
  peer.is_gone = true;
  --count_;
}

std::vector<Peer*> Peers::all() const {
  std::vector<Peer*> all;
  for (const auto& peer : places_) {
    if (peer) all.push_back(peer.get());
  }
  return all;
}

}  // namespace muster::server
