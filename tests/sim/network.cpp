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

Network::Connection* Network::find(ConnectionId connection) {
  const auto found = connections_.find(connection);
  return found == connections_.end() ? nullptr : &found->second;
}

void Network::forget_if_over(ConnectionId id, const Connection& connection) {
  for (const Direction& way : connection.ways) {
    if (way.is_open || !way.under_way.empty()) return;
  }
  connections_.erase(id);
}

void Network::set_end(ConnectionId connection, Side side, End end) {
  find(connection)->to(side).end = std::move(end);
}

void Network::put(ConnectionId id, Connection& connection, Side to, Piece piece) {
  if (connection.is_cut) return;
  Direction& way = connection.to(to);
  const Instant leaves = std::max(scheduler_.now(), blocked_until(connection.client, to));
  way.last_arrives = std::max(way.last_arrives, leaves + delay());
  way.under_way.push_back(std::move(piece));
  scheduler_.at(way.last_arrives, [this, id, to] { arrive(id, to); });
}

std::size_t Network::send(ConnectionId id, Side from, std::string_view bytes) {
  Connection* const connection = find(id);
  if (connection == nullptr || connection->is_cut) return 0;
  const std::size_t size = bytes.size();
  while (!bytes.empty()) {
    const std::size_t most = random_.one_in(8) ? 1 + random_.below(20) : bytes.size();
    const std::string_view piece = bytes.substr(0, most);
    bytes.remove_prefix(piece.size());
    put(id, *connection, other(from), std::string(piece));
  }
  return size;
}

void Network::close(ConnectionId id, Side from) {
  Connection* const connection = find(id);
  if (connection == nullptr) return;
  connection->to(from).is_open = false;
  put(id, *connection, other(from), std::nullopt);
  forget_if_over(id, *connection);
}

void Network::arrive(ConnectionId id, Side to) {
  Connection& connection = *find(id);
  if (const Instant until = blocked_until(connection.client, to); until > scheduler_.now()) {
    scheduler_.at(until, [this, id, to] { arrive(id, to); });
    return;
  }
  Direction& way = connection.to(to);
  const Piece piece = std::move(way.under_way.front());
  way.under_way.pop_front();
  if (!piece) return tell_closed(id, to);
  // It may be closed by whom it reaches, but not forgotten before this piece is used.
  if (way.is_open) {
    const auto received = way.end.received;
    received(*piece);
  }
  if (Connection* const after = find(id)) forget_if_over(id, *after);
  if (to == Side::client && taken) taken(id, piece->size());
}

void Network::tell_closed(ConnectionId id, Side side) {
  Connection* const connection = find(id);
  if (connection == nullptr) return;
  Direction& way = connection->to(side);
  const auto closed = way.is_open ? std::move(way.end.closed) : nullptr;
  way.is_open = false;
  forget_if_over(id, *connection);
  if (closed) closed();
}

void Network::cut(std::uint64_t client, bool client_learns, bool server_learns) {
  const auto found = newest_.find(client);
  if (found == newest_.end()) return;
  const ConnectionId id = found->second;
  Connection* const connection = find(id);
  if (connection == nullptr) return;
  connection->is_cut = true;
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
    connection.is_cut = true;
    connection.to(Side::server).is_open = false;
    scheduler_.after(delay(), [this, dead = id] { tell_closed(dead, Side::client); });
  }
}

}  // namespace muster::sim
