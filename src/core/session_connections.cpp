#include "core/session_connections.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace muster::core {

void SessionConnections::add(ConnectionId connection, Session& session) {
  const std::size_t place = place_of(connection);
  if (place >= places_.size()) places_.resize(place + 1);
  assert(places_[place].connection == 0);
  places_[place] = {connection, &session};
  ++count_;
}

void SessionConnections::forget(ConnectionId connection) {
  if (session_on(connection) == nullptr) return;
  effects_.long_copies().forget(connection);
  places_[place_of(connection)] = {};
  --count_;
}

void SessionConnections::close(ConnectionId connection, Error reason) {
  forget(connection);
  auto shared = std::make_shared<const Error>(std::move(reason));
  closed_.add(connection, shared);
  effects_.add(Close{connection, std::move(shared)});
}

const Error* SessionConnections::why_closed(ConnectionId connection) const {
  const auto* const reason = closed_.find(connection);
  return reason != nullptr ? reason->get() : nullptr;
}

std::vector<ConnectionId> SessionConnections::all() const {
  std::vector<ConnectionId> all;
  all.reserve(count_);
  for (const Place& place : places_) {
    if (place.connection != 0) all.push_back(place.connection);
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace muster::core
