#include <algorithm>

#include "core/engine_impl.h"

// A session's life: begun by a hello -> heard with every byte -> its connection may end and a
// resume bring another one, or a resume replaces a connection that seems to live -> over: after
// its time-out (shorter: the grace, after FIN or RST), by a goodbye, or fenced by somebody.
// Its expiry timer is armed once and moves itself when it fires early, so that a byte costs no
// work on timers.

namespace muster::core {
namespace {

bool same_token(const wire::ResumeToken& a, const wire::ResumeToken& b) {
  int difference = 0;  // all bytes are looked at: the time tells nothing about the first wrong one
  for (std::size_t index = 0; index < a.bytes.size(); ++index) {
    difference |= a.bytes[index] ^ b.bytes[index];
  }
  return difference == 0;
}

Error full(std::string_view limit_name, std::uint64_t actual, std::uint64_t limit) {
  Error error = failure(ErrorCode::busy, "the server is full: it has reached its ");
  error.detail += limit_name;
  error.actual = actual;
  error.limit = limit;
  return error;
}

}  // namespace

void ClosedConnections::add(ConnectionId connection, std::shared_ptr<const Error> reason) {
  if (!reasons_.emplace(connection, std::move(reason)).second) return;
  order_.push_back(connection);
  if (order_.size() <= count_max) return;
  reasons_.erase(order_.front());
  order_.pop_front();
}

const Error* ClosedConnections::reason(ConnectionId connection) const {
  const auto found = reasons_.find(connection);
  return found == reasons_.end() ? nullptr : found->second.get();
}

void FencedSessions::add(std::uint64_t session_id, const Error& why) {
  by_.emplace(session_id, why.decided_by);
  order_.push_back(session_id);
  if (order_.size() <= count_max) return;
  by_.erase(order_.front());
  order_.pop_front();
}

std::string_view FencedSessions::by(std::uint64_t session_id) const {
  const auto found = by_.find(session_id);
  return found == by_.end() ? std::string_view() : found->second;
}

void Engine::Impl::on(const Hello& event) {
  if (closed_.reason(event.connection) != nullptr) return;
  if (Session* const session = session_on(event.connection)) {
    detach(*session, DisconnectCause::closed);
    return close(event.connection,
                 failure(ErrorCode::protocol_error, "a second hello came on one connection"));
  }
  if (auto why = refusal(event.hello)) return refuse(event, std::move(*why));
  if (event.hello.session_id == 0) return begin(event);
  resume(event);
}

std::optional<Error> Engine::Impl::refusal(const wire::ClientHello& hello) const {
  if (stopping_) return failure(ErrorCode::unavailable, "the server is stopping");
  if (hello.version_min > wire::protocol_version || hello.version_max < wire::protocol_version) {
    Error error =
        failure(ErrorCode::unsupported, "the server speaks protocol version " +
                                            std::to_string(wire::protocol_version) +
                                            ", the client " + std::to_string(hello.version_min) +
                                            " to " + std::to_string(hello.version_max));
    error.expected = wire::protocol_version;
    error.actual = hello.version_max;
    return error;
  }
  if (hello.auth_method != static_cast<std::uint8_t>(wire::AuthMethod::none)) {
    return failure(ErrorCode::unsupported, "the server knows no authentication method " +
                                               std::to_string(hello.auth_method));
  }
  if (hello.incarnation != 0 && hello.incarnation != options_.incarnation) {
    Error error = failure(ErrorCode::server_restarted,
                          "the server was restarted; what the session had is lost");
    error.expected = hello.incarnation;
    error.actual = options_.incarnation;
    return error;
  }
  return std::nullopt;
}

void Engine::Impl::refuse(const Hello& event, Error why) {
  wire::ServerHello hello;
  hello.status = static_cast<std::uint16_t>(why.code);
  hello.incarnation = options_.incarnation;
  hello.detail = why.detail;
  effects_.emplace_back(
      SendHello{event.connection, std::make_shared<const wire::ServerHello>(std::move(hello))});
  close(event.connection, std::move(why));
}

void Engine::Impl::begin(const Hello& event) {
  if (sessions_.size() >= options_.sessions_max) {
    return refuse(event, full("sessions_max", sessions_.size(), options_.sessions_max));
  }
  NameSpace* name_space = name_space_for(event.hello.name_space);
  if (name_space == nullptr) {
    return refuse(event, full("name_spaces_max", name_spaces_.size(), options_.name_spaces_max));
  }
  auto owned = std::make_unique<Session>(++last_session_id_, *name_space, name_space->quota);
  Session& session = *owned;
  session.token = event.fresh_token;
  session.role = event.hello.role;
  session.process = event.hello.process;
  sessions_.emplace(session.id, std::move(owned));
  if (session.role == wire::Role::observer) ++observers_count_;
  ++name_space->sessions;
  if (session.process.id != ProcessId{}) processes_[session.process.id].append(session.of_process);
  welcome(session, event);
  timers_.arm(session.expiry, deadline_of(session));
}

std::optional<Error> Engine::Impl::refusal(const Session& session,
                                           const wire::ClientHello& hello) const {
  if (!same_token(session.token, hello.token)) {
    return failure(ErrorCode::permission_denied,
                   "the token is not that of session " + std::to_string(session.id));
  }
  if (session.name_space.name != hello.name_space) {
    return failure(ErrorCode::permission_denied,
                   "session " + std::to_string(session.id) + " belongs to namespace " +
                       quoted(session.name_space.name) + ", not to " + quoted(hello.name_space));
  }
  return std::nullopt;
}

void Engine::Impl::resume(const Hello& event) {
  const std::uint64_t id = event.hello.session_id;
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) {
    const std::string_view by = fenced_.by(id);
    if (by.empty()) {
      return refuse(event, failure(ErrorCode::session_expired,
                                   "session " + std::to_string(id) + " is over; begin a new one"));
    }
    Error error = failure(ErrorCode::fenced, "declared dead by ");
    error.detail += by;
    error.decided_by = by;
    return refuse(event, std::move(error));
  }
  Session& session = *found->second;
  if (auto why = refusal(session, event.hello)) return refuse(event, std::move(*why));
  if (session.connection != 0) {
    close(session.connection, failure(ErrorCode::closed,
                                      "a newer connection of the same session "
                                      "has taken its place"));
  }
  welcome(session, event);
  session.name_space.groups.resumed(session);
}

void Engine::Impl::welcome(Session& session, const Hello& event) {
  session.connection = event.connection;
  connections_.emplace(event.connection, &session);
  wire::ServerHello hello;
  hello.resumed = event.hello.session_id != 0;
  hello.incarnation = options_.incarnation;
  hello.session_id = session.id;
  hello.token = session.token;
  hello.limits = options_.limits;
  hello.hosting_process = options_.hosting_process;
  hello.hosting_rank = options_.hosting_rank;
  effects_.emplace_back(
      SendHello{event.connection, std::make_shared<const wire::ServerHello>(std::move(hello))});
  heard(session);
}

/// Most events come from the connection that the last one came from.
Session* Engine::Impl::session_on(ConnectionId connection) {
  if (connection == last_connection_) return last_session_;
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return nullptr;
  last_connection_ = connection;
  last_session_ = found->second;
  return last_session_;
}

void Engine::Impl::forget_connection(ConnectionId connection) {
  connections_.erase(connection);
  if (connection == last_connection_) last_connection_ = 0;
}

Session* Engine::Impl::speaker(ConnectionId connection, std::string_view doing) {
  if (Session* const session = session_on(connection)) {
    heard(*session);
    return session;
  }
  if (closed_.reason(connection) == nullptr && !stopping_) {
    close(connection, failure(ErrorCode::protocol_error, std::string(doing) + " before a hello"));
  }
  return nullptr;
}

void Engine::Impl::heard(Session& session) {
  session.heard = now_;
  session.paused_when_heard = paused_sum_;
  if (session.claimants > 0) session.name_space.groups.heard(session);
}

void Engine::Impl::on(const Heard& event) {
  if (Session* const session = session_on(event.connection)) heard(*session);
}

void Engine::Impl::on(const Goodbye& event) {
  Session* session = speaker(event.connection, "a goodbye");
  if (session == nullptr) return;
  session->connection = 0;
  close(event.connection, failure(ErrorCode::closed, "the client said goodbye"));
  end(*session, LossCause::none);
}

void Engine::Impl::on(const Disconnected& event) {
  Session* const session = session_on(event.connection);
  if (session == nullptr) return;
  forget_connection(event.connection);
  detach(*session, event.cause);
}

void Engine::Impl::detach(Session& session, DisconnectCause cause) {
  session.connection = 0;
  session.disconnected = now_;
  session.paused_when_disconnected = paused_sum_;
  session.disconnect_cause = cause;
  timers_.arm(session.expiry, deadline_of(session));
  if (session.claimants > 0) session.name_space.groups.disconnected(session);
}

void Engine::Impl::close(ConnectionId connection, Error reason) {
  forget_connection(connection);
  auto shared = std::make_shared<const Error>(std::move(reason));
  closed_.add(connection, shared);
  effects_.emplace_back(Close{connection, std::move(shared)});
}

void Engine::Impl::on(const Stop& event) {
  stopping_ = true;
  std::vector<ConnectionId> connections;
  for (const auto& [connection, session] : connections_) connections.push_back(connection);
  std::sort(connections.begin(), connections.end());  // the same effects wherever it runs
  for (const ConnectionId connection : connections) {
    connections_.at(connection)->connection = 0;
    effects_.emplace_back(SendGoodbye{connection, event.reason});
    close(connection, failure(ErrorCode::unavailable, event.reason));
  }
}

/// Both sums leave out the time in which the server itself did not run.
Instant Engine::Impl::deadline_of(const Session& session) const {
  const wire::ServerLimits& limits = options_.limits;
  const Instant silent =
      session.heard + limits.session_timeout + (paused_sum_ - session.paused_when_heard);
  if (session.connection != 0 || session.disconnect_cause != DisconnectCause::closed) return silent;
  const Instant gone =
      session.disconnected + limits.grace + (paused_sum_ - session.paused_when_disconnected);
  return std::min(silent, gone);
}

Duration Engine::Impl::silence(const Session& session) const {
  return now_ - session.heard - (paused_sum_ - session.paused_when_heard);
}

void Engine::Impl::fire_expiry(Session& session) {
  const Instant deadline = deadline_of(session);
  if (deadline > now_) return timers_.arm(session.expiry, deadline);
  // What came to its end first: the grace, or the whole timeout?
  const Duration left = options_.limits.session_timeout - silence(session);
  const bool was_closed = deadline - now_ < left;
  Error why = failure(ErrorCode::session_expired,
                      "nothing was heard of it for " + in_seconds(silence(session)));
  const std::string how =
      was_closed ? "its connection ended and it did not come back" : "it was silent for too long";
  log(LogLevel::info, "session " + std::to_string(session.id) + " of " + describe(session.process) +
                          " is lost: " + how);
  end_session(session, std::move(why), was_closed ? LossCause::closed : LossCause::heartbeat);
}

void Engine::Impl::end_session(Session& session, Error why, LossCause cause) {
  if (session.ended) return;
  if (why.decided_by.empty()) why.decided_by = "server";
  if (why.code == ErrorCode::fenced) fenced_.add(session.id, why);
  if (session.connection != 0) {
    auto body = std::make_shared<std::string>();
    wire::append_event(*body, wire::Event{wire::EventKind::session_ended, 0, why});
    send_event(session, wire::EventKind::session_ended, std::move(body));
    const ConnectionId connection = session.connection;
    session.connection = 0;
    close(connection, std::move(why));
  }
  end(session, cause);
}

/// Touches only what the session owns.
void Engine::Impl::end(Session& session, LossCause cause) {
  const auto owned = sessions_.find(session.id);
  session.ended = true;
  session.expiry.disarm();
  parked_count_ -= session.parked.size();
  session.parked.clear();
  forget_answers(session);
  session.of_process.leave();
  const auto process = processes_.find(session.process.id);
  if (process != processes_.end() && process->second.empty()) processes_.erase(process);
  if (cause != LossCause::none) ++sessions_lost_count_;
  if (session.role == wire::Role::observer) --observers_count_;

  NameSpace& name_space = session.name_space;
  ended_.push_back(std::move(owned->second));
  sessions_.erase(owned);
  --name_space.sessions;
  name_space.table.session_ended(session);
  name_space.groups.session_ended(session, cause);
  watch_if_unused(name_space);
}

}  // namespace muster::core
