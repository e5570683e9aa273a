#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/events.h"
#include "core/memory/hash.h"
#include "core/name_spaces.h"
#include "core/past_sessions.h"
#include "core/session_connections.h"

namespace muster::core {

/// From now on the session may what its role and the grant allow: what it waits for without a right
/// fails, and who may not take part in groups any more is lost to them. In
/// core/sessions_grants.cpp.
void change_grant(EngineServices& services, Session& session,
                  std::shared_ptr<const auth::Grant> grant);

/// The life of every session, which is told in core/sessions.cpp.
class Sessions {
 public:
  Sessions(EngineServices& services, NameSpaces& name_spaces);
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  void hello(const Hello& event);
  /// Instead of a session.
  void refuse(const Hello& event, Error why);
  void echo(const Echo& event);
  void goodbye(const Goodbye& event);
  void disconnected(const Disconnected& event);
  /// Others are known now: sessions have other rights, or end.
  void regrant(const Regrant& event);
  /// Says goodbye to all; no session begins from then on.
  void stop(const std::string& reason);
  void expire(Session& session);
  /// Closes the connection of a client that breaks the protocol. Its session has the grace.
  void break_off(Session& session, std::string breach);
  /// Ends a session as a loss does.
  ///
  /// fencing  of one that ends with `fenced`
  void end(Session& session, Error why, LossCause cause, Fencing fencing = Fencing::declared_dead);

  /// The session that speaks on the connection, marked as heard. Null after a breach of the
  /// protocol, which closes the connection, and for connections that were closed before.
  Session* speaker(ConnectionId connection, std::string_view doing);
  void heard(Session& session);
  /// It has asked for something.
  void requested(Session& session) {
    if (std::erase(operators_, &session) != 0) operators_.push_back(&session);
  }
  SessionConnections& connections() { return connections_; }

  /// Those of the process that `viewer` may know of, in its namespace.
  std::vector<Session*> of_process(const ProcessId& process, const Session& viewer);
  void add_counts(Counts& counts) const;
  std::uint64_t begun_count() const { return last_id_; }

  /// Frees the sessions that the last event has ended.
  void bury();
  /// Lets go of all that sessions have of namespaces, which go before them.
  void release();

 private:
  struct ProcessHash {
    std::array<std::uint64_t, 2> key;
    std::size_t operator()(const ProcessId& id) const {
      return keyed_hash(key, {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()});
    }
  };

  std::optional<Error> refusal(const Hello& event) const;
  std::optional<Error> refusal_of_identity(const Unit& unit);
  std::optional<Limit> limit_reached(Unit& unit, bool is_guest);
  std::optional<Error> refusal_of_channel(const Hello& event, Unit& unit);
  Error why_full(Limit limit, bool is_guest);
  SharedLimit limit_of_guests() const;
  bool has_place_of_guests(const Unit& unit) const;
  /// Places that are taken, without those of operators.
  std::size_t taken_count() const { return sessions_.size() - operators_.size(); }
  bool has_place(Unit& unit);
  bool make_room(Unit& unit);
  bool has_place_of_operators(const Session& session) const;
  void make_room_for_operator();
  /// returns  whether it was begun; else its hello was refused
  bool begin(const Hello& event, std::uint64_t id, const wire::ResumeToken& token);
  void resume(const Hello& event);
  void resume_past(const Hello& event);
  void welcome(Session& session, const Hello& event);
  void detach(Session& session, DisconnectCause cause);
  /// why  for those who ask what happened; null: the cause says it
  void end(Session& session, LossCause cause, const Error* why = nullptr);
  void end_observers(NameSpace& name_space);

  EngineServices& services_;
  NameSpaces& name_spaces_;
  bool is_stopping_ = false;
  std::uint64_t last_id_ = 0;
  std::uint64_t observers_count_ = 0;
  std::uint64_t guests_count_ = 0;  ///< clients of TCPStore
  /// Those that have a place of operators, at most `operators_max`; the one that has asked last is
  /// the last one.
  std::vector<Session*> operators_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Session>> sessions_;
  SessionConnections connections_;
  std::unordered_map<ProcessId, Chain<Session>, ProcessHash> processes_;
  PastSessions past_;
  std::vector<std::unique_ptr<Session>> ended_;  ///< somebody may still hold a reference
};

}  // namespace muster::core
