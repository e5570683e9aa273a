#include "server/connection_manager.h"

#include <utility>

namespace muster::server {

ConnectionManager::ConnectionManager(World& world, const core::Options& options, core::Quota& quota,
                                     core::RimCounts& counts, SendScheduler& sender)
    : world_(world),
      quota_(quota),
      counts_(counts),
      sender_(sender),
      limits_(options.connections),
      frame_limits_{options.limits.request_bytes_max(), options.limits.essential_bytes_max()},
      newcomers_(limits_) {}

Peer& ConnectionManager::add(std::shared_ptr<net::Channel> connection, std::string unit,
                             base::Instant now) {
  ++counts_.accepted;
  Peer& peer = peers_.add(std::move(connection), quota_, frame_limits_);
  peer.unit = std::move(unit);
  newcomers_.add(peer, now);
  control_admission();
  return peer;
}

void ConnectionManager::said_hello(Peer& peer) {
  newcomers_.remove(peer);
  control_admission();
}

void ConnectionManager::forget(Peer& peer) {
  if (peer.is_gone) return;
  newcomers_.remove(peer);
  sender_.forget(peer);
  peers_.mark_gone(peer);
  control_admission();
}

void ConnectionManager::close(Peer& peer) {
  peer.connection->read_into({});
  peer.connection->close();
  forget(peer);
}

void ConnectionManager::close_after_flush(Peer& peer) {
  peer.connection->read_into({});
  let_leave(peer.connection);
  forget(peer);
}

void ConnectionManager::send_away(std::shared_ptr<net::Channel> connection) {
  ++counts_.accepted;
  ++counts_.refused;
  let_leave(std::move(connection));
  control_admission();
}

void ConnectionManager::let_leave(std::shared_ptr<net::Channel> connection) {
  connection->close_after_flush(limits_.leaving_time);
  leaving_.push_back(std::move(connection));
}

void ConnectionManager::close_all() {
  for (Peer* const peer : peers_.all()) close(*peer);
  for (const auto& connection : leaving_) connection->close();
  leaving_.clear();
}

void ConnectionManager::look_at_leaving() {
  forget_left();
  control_admission();
}

void ConnectionManager::forget_left() {
  std::erase_if(leaving_, [](const auto& connection) { return !connection->is_lingering(); });
}

void ConnectionManager::control_admission() {
  if (leaving_.size() >= limits_.leaving_connections_max) forget_left();
  counts_.newcomers = newcomers_.count();
  counts_.leaving = leaving_.size();
  if (newcomers_.is_full() || leaving_.size() >= limits_.leaving_connections_max) {
    world_.admit(World::Admission::nobody);
  } else if (newcomers_.has_full_host()) {
    world_.admit(World::Admission::local_only);
  } else {
    world_.admit(World::Admission::everybody);
  }
}

}  // namespace muster::server
