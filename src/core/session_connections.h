#pragma once

#include <cstddef>
#include <memory>
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

  /// The session on the connection, which is not 0. Null: there is none.
  Session* session_on(ConnectionId connection) const {
    const std::size_t place = place_of(connection);
    if (place >= places_.size() || places_[place].connection != connection) return nullptr;
    return places_[place].session;
  }
  /// Nothing is at the connection's place.
  void add(ConnectionId connection, Session& session);
  void forget(ConnectionId connection);
  /// Has the rim close it; the session that was on it, if any, is the caller's to detach.
  void close(ConnectionId connection, Error reason);
  /// Why the connection was closed. Null: it was not, or long ago.
  const Error* why_closed(ConnectionId connection) const;

  std::size_t count() const { return count_; }
  /// In ascending order: the same effects wherever it runs.
  std::vector<ConnectionId> all() const;

 private:
  struct Place {
    ConnectionId connection = 0;  ///< 0: none
    Session* session = nullptr;
  };

  EffectList& effects_;
  std::vector<Place> places_;
  std::size_t count_ = 0;
  /// The connections that were closed last, and why: frames of theirs may still be on their way.
  Remembered<ConnectionId, std::shared_ptr<const Error>, 1024> closed_;
};

}  // namespace muster::core
