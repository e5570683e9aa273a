#include "server/peer.h"

namespace muster::server {

core::ConnectionId Peers::next_id() const {
  const std::size_t place = free_places_.empty() ? places_.size() : free_places_.back();
  return serial_ << place_bits | place;
}

Peer& Peers::add(std::unique_ptr<Peer> peer) {
  const std::size_t place = peer->id & place_mask;
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

std::unique_ptr<Peer> Peers::remove(core::ConnectionId id) {
  if (find(id) == nullptr) return nullptr;
  free_places_.push_back(id & place_mask);
  --count_;
  return std::move(places_[id & place_mask]);
}

std::vector<core::ConnectionId> Peers::ids() const {
  std::vector<core::ConnectionId> all;
  for (const auto& peer : places_) {
    if (peer) all.push_back(peer->id);
  }
  return all;
}

}  // namespace muster::server
