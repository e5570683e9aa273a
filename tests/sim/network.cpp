#include "network.h"

#include <algorithm>

namespace muster::sim {

Duration Network::delay() { return random_.between(std::chrono::microseconds(50), delay_max_); }

Network::ConnectionId Network::open(std::uint64_t client) {
  const ConnectionId id = ++last_;
  connections_[id].client = client;
  newest_[client] = id;
  return id;
}

std::uint64_t Network::client_of(ConnectionId connection) const {
  return connections_.at(connection).client;
}

Network::Direction& Network::direction(ConnectionId connection, Side to) {
  return connections_.at(connection).to[static_cast<std::size_t>(to)];
}

void Network::set_end(ConnectionId connection, Side side, End end) {
  direction(connection, side).end = std::move(end);
}

void Network::put(ConnectionId id, Side to, Piece piece) {
  const Connection& connection = connections_.at(id);
  if (connection.is_cut) return;
  Direction& way = direction(id, to);
  const Instant leaves = std::max(scheduler_.now(), blocked_until(connection.client, to));
  way.last_arrives = std::max(way.last_arrives, leaves + delay());
  way.under_way.push_back(std::move(piece));
  scheduler_.at(way.last_arrives, [this, id, to] { arrive(id, to); });
}

void Network::send(ConnectionId id, Side from, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t most = random_.one_in(8) ? 1 + random_.below(20) : bytes.size();
    const std::string_view piece = bytes.substr(0, most);
    bytes.remove_prefix(piece.size());
    put(id, other(from), std::string(piece));
  }
}

void Network::close(ConnectionId id, Side from) {
  direction(id, from).is_open = false;
  put(id, other(from), std::nullopt);
}

void Network::arrive(ConnectionId id, Side to) {
  Direction& way = direction(id, to);
  const std::uint64_t client = connections_.at(id).client;
  if (const Instant until = blocked_until(client, to); until > scheduler_.now()) {
    scheduler_.at(until, [this, id, to] { arrive(id, to); });
    return;
  }
  const Piece piece = std::move(way.under_way.front());
  way.under_way.pop_front();
  if (!piece) return tell_closed(id, to);
  if (way.is_open) way.end.received(*piece);
}

void Network::tell_closed(ConnectionId id, Side side) {
  Direction& way = direction(id, side);
  if (!way.is_open) return;
  way.is_open = false;
  way.end.closed();
}

void Network::cut(std::uint64_t client, bool client_learns, bool server_learns) {
  const auto found = newest_.find(client);
  if (found == newest_.end()) return;
  const ConnectionId id = found->second;
  connections_.at(id).is_cut = true;
  // What is under way arrives until an end learns of it.
  if (client_learns) scheduler_.after(delay(), [this, id] { tell_closed(id, Side::client); });
  if (server_learns) scheduler_.after(delay(), [this, id] { tell_closed(id, Side::server); });
}

void Network::block(std::uint64_t client, Side arriving, Instant until) {
  Instant& blocked = blocked_[client].until[static_cast<std::size_t>(arriving)];
  blocked = std::max(blocked, until);
}

void Network::block(std::uint64_t client, Instant until) {
  block(client, Side::client, until);
  block(client, Side::server, until);
}

Instant Network::blocked_until(std::uint64_t client, Side to) const {
  const auto found = blocked_.find(client);
  return found == blocked_.end() ? Instant{} : found->second.until[static_cast<std::size_t>(to)];
}

bool Network::is_blocked(std::uint64_t client) const {
  const Instant now = scheduler_.now();
  return blocked_until(client, Side::client) > now || blocked_until(client, Side::server) > now;
}

void Network::server_died() {
  for (auto& [id, connection] : connections_) {
    if (!connection.to[0].is_open && !connection.to[1].is_open) continue;
    connection.is_cut = true;
    direction(id, Side::server).is_open = false;
    scheduler_.after(delay(), [this, dead = id] { tell_closed(dead, Side::client); });
  }
}

}  // namespace muster::sim
