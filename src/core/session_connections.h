#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/remembered.h"
#include "core/session/effect_list.h"

namespace muster::core {

/// Which session speaks on which connection, and why the connections that were closed last were.
class SessionConnections {
 public:
  explicit SessionConnections(EffectList& effects) : effects_(effects) {}
  SessionConnections(const SessionConnections&) = delete;
  SessionConnections& operator=(const SessionConnections&) = delete;

  /// The session on the connection, which is not 0. Null: there is none. Most events come from the
  /// connection that the last one came from.
  Session* session_on(ConnectionId connection) {
    return connection == last_connection_ ? last_session_ : look_up(connection);
  }
  void add(ConnectionId connection, Session& session) { sessions_.emplace(connection, &session); }
  void forget(ConnectionId connection);
  /// Has the rim close it; the session that was on it, if any, is the caller's to detach.
  void close(ConnectionId connection, Error reason);
  /// Why the connection was closed. Null: it was not, or long ago.
  const Error* why_closed(ConnectionId connection) const;

  std::size_t count() const { return sessions_.size(); }
  /// In ascending order: the same effects wherever it runs.
  std::vector<ConnectionId> all() const;

 private:
  Session* look_up(ConnectionId connection);

  EffectList& effects_;
  std::unordered_map<ConnectionId, Session*> sessions_;
  ConnectionId last_connection_ = 0;  ///< that was looked up; 0: none
  Session* last_session_ = nullptr;
  /// The connections that were closed last, and why: frames of theirs may still be on their way.
  Remembered<ConnectionId, std::shared_ptr<const Error>, 1024> closed_;
};

}  // namespace muster::core
