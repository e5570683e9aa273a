#include "server/connection_manager.h"

#include <utility>

namespace muster::server {

ConnectionManager::ConnectionManager(ConnectionEvents& events, const core::Options& options,
                                     core::Quota& quota, core::Quota& replies,
                                     core::RimCounts& counts, SendScheduler& sender,
                                     WorkScheduler& work)
    : events_(events),
      quota_(quota),
      replies_(replies),
      counts_(counts),
      sender_(sender),
      work_(work),
      limits_(options.connections),
      frame_limits_{options.limits.request_bytes_max(), options.limits.essential_bytes_max()},
      newcomers_(limits_) {}

Newcomer& ConnectionManager::add(std::shared_ptr<net::Channel> connection, Unit& unit,
                                 const Arrival& arrival, base::Instant now) {
  ++counts_.accepted;
  Newcomer& newcomer = newcomers_.add(events_, std::move(connection), unit, arrival, now);
  counts_.newcomers = newcomers_.count();
  return newcomer;
}

Peer& ConnectionManager::said_hello(Newcomer& newcomer, Unit& unit) {
  Peer& peer = peers_.add(events_, newcomer.connection, UnitPlace(unit), quota_, frame_limits_);
  peer.connection->pass_to(peer);
  take(newcomer);
  return peer;
}

std::shared_ptr<net::Channel> ConnectionManager::take(Newcomer& newcomer) {
  handshakes_.leave(newcomer);
  auto connection = std::move(newcomers_.take(newcomer)->connection);
  counts_.newcomers = newcomers_.count();
  return connection;
}

void ConnectionManager::forget(Newcomer& newcomer) { take(newcomer); }

void ConnectionManager::close(Newcomer& newcomer) { take(newcomer)->close(); }

void ConnectionManager::close_after_flush(Newcomer& newcomer) { let_leave(take(newcomer)); }

void ConnectionManager::forget(Peer& peer) {
  if (peer.is_gone) return;
  peer.outbox.clear();
  sender_.forget(peer);
  work_.forget(peer);
  peer.release_channel();
  peers_.mark_gone(peer);
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

/// Beyond so many the one that has had most time is waited for no longer.
void ConnectionManager::let_leave(std::shared_ptr<net::Channel> connection) {
  connection->close_after_flush(limits_.leaving_time);
  const auto are_many = [this] {
    return !is_emptied_ && leaving_.size() >= limits_.leaving_connections_max;
  };
  if (are_many()) look_at_leaving();
  if (are_many()) close_first_leaving();
  const std::uint64_t held_bytes = connection->held_bytes();
  replies_.charge_always(held_bytes);
  leaving_.push_back({std::move(connection), held_bytes});
  counts_.leaving = leaving_.size();
}

void ConnectionManager::close_first_leaving() {
  replies_.release(leaving_.front().charged_bytes);
  leaving_.front().connection->close();
  leaving_.pop_front();
}

void ConnectionManager::close_leaving() {
  while (!leaving_.empty()) close_first_leaving();
  counts_.leaving = 0;
}

void ConnectionManager::close_all() {
  for (Peer* const peer : peers_.all()) close(*peer);
  while (!newcomers_.empty()) close(newcomers_.first());
  close_leaving();
}

void ConnectionManager::look_at_leaving() {
  std::erase_if(leaving_, [this](const Leaving& leaving) {
    if (leaving.connection->is_lingering()) return false;
    replies_.release(leaving.charged_bytes);
    return true;
  });
  counts_.leaving = leaving_.size();
}

}  // namespace muster::server
