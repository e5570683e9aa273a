#include "core/session_connections.h"

#include <algorithm>
#include <utility>

namespace muster::core {

Session* SessionConnections::look_up(ConnectionId connection) {
  const auto found = sessions_.find(connection);
  if (found == sessions_.end()) return nullptr;
  last_connection_ = connection;
  last_session_ = found->second;
  return last_session_;
}

void SessionConnections::forget(ConnectionId connection) {
  sessions_.erase(connection);
  if (connection == last_connection_) last_connection_ = 0;
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
  all.reserve(sessions_.size());
  for (const auto& [connection, session] : sessions_) all.push_back(connection);
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace muster::core
