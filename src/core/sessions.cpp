#include "core/sessions.h"

#include <algorithm>
#include <utility>

#include "auth/admission.h"
#include "core/session/failure.h"

// A session's life: begun by a hello -> its client shows that it has read the answer, by its echo;
// before that nothing that it says is done -> heard with every byte -> its connection may end and a
// resume bring another one, or a resume replaces a connection that seems to live -> over: after
// its time-out (shorter: the grace, after FIN or RST), by a goodbye, or fenced by somebody.
// A blank session, which has never asked for anything, is over when its connection is; who comes
// back in time begins it anew, and nobody can tell the difference. Its expiry timer is armed once
// and moves itself when it fires early, so that a byte costs no work on timers.

namespace muster::core {
namespace {

bool same_token(const wire::ResumeToken& a, const wire::ResumeToken& b) {
  int difference = 0;  // all bytes are looked at: the time tells nothing about the first wrong one
  for (std::size_t index = 0; index < a.bytes.size(); ++index) {
    difference |= a.bytes[index] ^ b.bytes[index];
  }
  return difference == 0;
}

/// Whether who says the hello is whose session it was. One answer tells all others that it is not.
///
/// identity  null: the server has no credentials
bool is_owner(const Hello& event, const wire::ResumeToken& token, const auth::Identity* identity) {
  const bool has_token = same_token(token, event.hello.token);
  const bool is_same = identity == nullptr || event.grant == nullptr
                           ? identity == nullptr && event.grant == nullptr
                           : event.grant->identity == *identity;
  return has_token && is_same;
}

const auth::Identity* identity_of(const Session& session) {
  return session.grant == nullptr ? nullptr : &session.grant->identity;
}

/// Why the hello cannot resume the session of this token, identity and namespace. A client that is
/// not the owner gets the same answer for every id, so that none learns which sessions exist.
std::optional<Error> refusal_to_resume(const Hello& event, const wire::ResumeToken& token,
                                       const auth::Identity* identity,
                                       const std::string& name_space) {
  const wire::ClientHello& hello = event.hello;
  const std::string session = "session " + std::to_string(hello.session_id);
  if (!is_owner(event, token, identity)) return PastSessions::why_over(hello.session_id);
  if (name_space != hello.name_space) {
    return failure(ErrorCode::permission_denied, session + " belongs to namespace " +
                                                     quoted_text(name_space) + ", not to " +
                                                     quoted_text(hello.name_space));
  }
  return std::nullopt;
}

/// So many accounts are looked at, with each session that begins, for those that are over.
constexpr std::size_t swept_per_session = 2;

/// When it is lost.
Instant expiry_of(EngineServices& services, const Session& session) {
  const wire::ServerLimits& limits = services.options().limits;
  const Instant silent = services.clock().after(session.liveness.heard, limits.session_timeout);
  if (session.connection != 0 || session.liveness.disconnect_cause != DisconnectCause::closed)
    return silent;
  const Instant gone = services.clock().after(session.liveness.disconnected, limits.grace);
  return std::min(silent, gone);
}

enum class Over : std::uint8_t { session, connection };

/// Tells the client why its connection is closed, and whether its session is over, too.
void tell_why(EffectList& effects, const Session& session, const Error& why, Over over) {
  auto body = std::make_shared<std::string>();
  wire::append_event(*body,
                     wire::Event{wire::EventKind::session_ended, 0, why, over == Over::session});
  effects.send_event(session, wire::EventKind::session_ended, std::move(body));
}

/// The session is that of a guest.
/// guests  all of them together have the memory that one unit may have
void receive_guest(Session& session, const GuestTerms& terms, Quota& guests) {
  session.is_guest = session.has_echoed = true;
  Unit& unit = session.account.unit;
  unit.set_limits(terms.limits);
  unit.quota.set_parent(guests);
  if (terms.limits.memory_bytes != 0) guests.set_limit(terms.limits.memory_bytes);
}

/// Every change of it: the namespace counts who is connected.
void change_connection(Session& session, ConnectionId connection) {
  std::uint32_t& connected = session.name_space.run.connected;
  const bool counts = session.role != wire::Role::observer;
  if (counts && session.connection != 0) --connected;
  if (counts && connection != 0) ++connected;
  session.connection = connection;
}

}  // namespace

Sessions::Sessions(EngineServices& services, NameSpaces& name_spaces)
    : services_(services),
      name_spaces_(name_spaces),
      connections_(services.effects()),
      processes_(0, ProcessHash{services.options().hash_key}) {}

void Sessions::hello(const Hello& event) {
  if (connections_.why_closed(event.connection) != nullptr) return;
  if (Session* const session = connections_.session_on(event.connection)) {
    return break_off(*session, "a second hello came on one connection");
  }
  if (auto why = refusal(event)) return refuse(event, std::move(*why));
  if (event.hello.session_id != 0) return resume(event);
  if (begin(event, last_id_ + 1, event.fresh_token)) ++last_id_;
}

/// What is said of a grant does not depend on what there is in the server.
std::optional<Error> Sessions::refusal(const Hello& event) const {
  const wire::ClientHello& hello = event.hello;
  if (event.grant != nullptr && !event.grant->namespaces.allows(hello.name_space)) {
    return auth::not_admitted();
  }
  if (is_stopping_) return failure(ErrorCode::unavailable, "the server is stopping");
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
  if (hello.incarnation != 0 && hello.incarnation != services_.options().incarnation) {
    Error error = failure(ErrorCode::server_restarted,
                          "the server was restarted; what the session had is lost");
    error.expected = hello.incarnation;
    error.actual = services_.options().incarnation;
    return error;
  }
  return std::nullopt;
}

void Sessions::refuse(const Hello& event, Error why) {
  wire::ServerHello hello;
  hello.status = static_cast<std::uint16_t>(why.code);
  hello.incarnation = services_.options().incarnation;
  hello.detail = why.detail;
  services_.effects().add(
      SendHello{event.connection, std::make_shared<const wire::ServerHello>(std::move(hello))});
  connections_.close(event.connection, std::move(why));
}

bool Sessions::begin(const Hello& event, std::uint64_t id, const wire::ResumeToken& token) {
  NameSpace* name_space = name_spaces_.find_for(event.hello);
  Unit& unit = name_spaces_.units().find_or_make(event.unit);
  std::optional<Error> why = name_space == nullptr
                                 ? name_spaces_.refusal_to_make(event.hello.name_space, unit)
                                 : name_spaces_.refusal_to_enter(*name_space, event);
  if (!why) why = refusal_of_identity(unit);
  std::optional<Limit> reached;
  if (!why) reached = limit_reached(unit, event.guest.has_value());
  const bool is_operator = operates(event.hello.role, event.grant.get(), event.is_of_own_user);
  if (reached && !is_operator) why = why_full(*reached, event.guest.has_value());
  if (!why && !is_operator) why = refusal_of_channel(event, unit);
  if (why) {
    refuse(event, *std::move(why));
    name_spaces_.units().drop_if_over(unit);
    return false;
  }
  if (name_space == nullptr) name_space = &name_spaces_.make(event.hello.name_space, unit);
  Account& account = name_space->accounts.find_or_make(unit);
  auto owned = std::make_unique<Session>(id, *name_space, account);
  Session& session = *owned;
  session.token = token;
  session.role = event.hello.role;
  session.set_grant(event.grant);
  session.is_of_own_user = event.is_of_own_user;
  if (event.guest) {
    receive_guest(session, *event.guest, services_.memory().guests);
    ++guests_count_;
  }
  NameSpaces::entered(*name_space, event);
  session.process = event.hello.process;
  session.requests.waiting = &name_space->waiting;
  name_space->sessions_by_id.emplace_hint(name_space->sessions_by_id.end(), session.id, &session);
  sessions_.emplace(session.id, std::move(owned));
  if (reached) {
    make_room_for_operator();
    operators_.push_back(&session);
  }
  if (session.role == wire::Role::observer) {
    ++observers_count_;
  } else {
    ++name_space->run.sessions;
  }
  ++name_space->sessions;
  ++account.sessions_count;
  name_space->accounts.sweep(name_spaces_.units(), swept_per_session);
  name_spaces_.units().session_came(account.unit);
  if (session.process.id != ProcessId{}) processes_[session.process.id].append(session.of_process);
  if (session.grant != nullptr) {
    services_.effects().log(session.role == wire::Role::observer ? LogLevel::debug : LogLevel::info,
                            "session " + std::to_string(session.id) + " of " +
                                describe(session.process) + " is that of " +
                                to_string(session.grant->identity),
                            account.unit.name);
  }
  welcome(session, event);
  if (!session.is_guest)
    services_.timers().arm(session.liveness.expiry, expiry_of(services_, session));
  return true;
}

/// Why there is no memory for the connection of a new session, where that takes more than a plain
/// one does. Values leave room for it, so that keys can be read and removed when memory is full:
/// half of the reserve, and all of it for an owner below its share. A session that is there already
/// may always come back.
std::optional<Error> Sessions::refusal_of_channel(const Hello& event, Unit& unit) {
  if (event.channel_bytes == 0) return std::nullopt;
  const Quota& all = services_.memory().all;
  const std::uint64_t reserve_bytes = all.reserve_bytes() / (unit.is_below_memory_share() ? 1 : 2);
  const std::uint64_t used_bytes = all.used_bytes() + event.channel_bytes;
  if (used_bytes <= all.limit_bytes() + reserve_bytes) return std::nullopt;
  return full(services_.counted().tallies, Limit::sessions_memory,
              "memory is short: there is none for one more encrypted session", all.used_bytes(),
              all.limit_bytes());
}

void Sessions::resume(const Hello& event) {
  const auto found = sessions_.find(event.hello.session_id);
  if (found == sessions_.end()) return resume_past(event);
  Session& session = *found->second;
  auto why = refusal_to_resume(event, session.token, identity_of(session), session.name_space.name);
  if (why) {
    services_.effects().log(LogLevel::warning,
                            describe(event.hello.process) + " tried to resume session " +
                                std::to_string(session.id) + " without its token or identity",
                            event.unit);
    return refuse(event, std::move(*why));
  }
  if (session.connection != 0) {
    connections_.close(
        session.connection,
        failure(ErrorCode::closed, "a newer connection of the same session has taken its place"));
  }
  change_grant(services_, session, event.grant);
  session.is_of_own_user = event.is_of_own_user;
  welcome(session, event);
  session.name_space.groups.resumed(session);
}

/// The session is over: only a blank one can begin again. The client of another one gets the reason
/// why it is over.
void Sessions::resume_past(const Hello& event) {
  const std::uint64_t id = event.hello.session_id;
  const PastSessions::Blank* const blank =
      past_.blank(id, services_.now(), services_.clock().paused());
  if (blank == nullptr) {
    const PastSessions::Ended* const ended = past_.ended(id);
    const bool is_told = ended != nullptr && is_owner(event, ended->token, ended->owner());
    return refuse(event,
                  is_told ? failure(ended->code, ended->detail) : PastSessions::why_over(id));
  }
  auto why = refusal_to_resume(event, blank->token, blank->owner(), blank->name_space);
  if (why) return refuse(event, std::move(*why));
  Hello again = event;
  again.hello.role = blank->role;
  if (begin(again, id, blank->token)) past_.forget_blank(id);
}

void Sessions::welcome(Session& session, const Hello& event) {
  change_connection(session, event.connection);
  session.liveness.key = event.key;
  session.requests.last_id_here = 0;
  connections_.add(event.connection, session);
  session.account.unit.sessions.append(session.of_unit);
  wire::ServerHello hello;
  hello.resumed = event.hello.session_id != 0;
  if (hello.resumed) session.has_echoed = true;  // it has told the token
  hello.incarnation = services_.options().incarnation;
  hello.session_id = session.id;
  hello.token = session.token;
  hello.limits = services_.options().limits;
  hello.gives_back = true;
  if (const Options& options = services_.options(); may_know_host(session, options.host.tenant)) {
    hello.hosting_process = options.host.process;
    hello.hosting_rank = options.host.rank;
  }
  services_.effects().add(SendHello{event.connection,
                                    std::make_shared<const wire::ServerHello>(std::move(hello)),
                                    &session.account.quota});
  heard(session);
}

void Sessions::echo(const Echo& event) {
  Session* const session = connections_.session_on(event.connection);
  if (session == nullptr) return static_cast<void>(speaker(event.connection, "an echo"));
  if (!same_token(session->token, event.token)) {
    return break_off(*session, "the echo is not that of the hello");
  }
  session->has_echoed = true;
  heard(*session);
}

Session* Sessions::speaker(ConnectionId connection, std::string_view doing) {
  if (Session* const session = connections_.session_on(connection)) {
    if (session->has_echoed) {
      heard(*session);
      return session;
    }
    break_off(*session, std::string(doing) + " before the echo of the server's hello");
    return nullptr;
  }
  if (connections_.why_closed(connection) == nullptr && !is_stopping_) {
    connections_.close(connection,
                       failure(ErrorCode::protocol_error, std::string(doing) + " before a hello"));
  }
  return nullptr;
}

void Sessions::heard(Session& session) {
  session.liveness.heard = services_.clock().moment();
  if (session.claimants > 0) session.name_space.groups.heard(session);
}

void Sessions::goodbye(const Goodbye& event) {
  Session* session = speaker(event.connection, "a goodbye");
  if (session == nullptr) return;
  change_connection(*session, 0);
  connections_.close(event.connection, failure(ErrorCode::closed, "the client said goodbye"));
  end(*session, LossCause::none);
}

void Sessions::disconnected(const Disconnected& event) {
  Session* const session = connections_.session_on(event.connection);
  if (session == nullptr) return;
  connections_.forget(event.connection);
  if (!event.refused.empty()) name_spaces_.note_refused(session->name_space.name, event.refused);
  detach(*session, event.cause);
}

void Sessions::detach(Session& session, DisconnectCause cause) {
  change_connection(session, 0);
  session.account.unit.sessions.prepend(session.of_unit);
  if (std::erase(operators_, &session) != 0) operators_.insert(operators_.begin(), &session);
  session.liveness.disconnected = services_.clock().moment();
  session.liveness.disconnect_cause = cause;
  if (session.is_guest) return end(session, LossCause::none);
  if (session.requests.last_id == 0) {  // it holds nothing, and nobody can fill the server with it
    past_.add_blank(session, expiry_of(services_, session), services_.clock().paused());
    return end(session, LossCause::none);
  }
  services_.timers().arm(session.liveness.expiry, expiry_of(services_, session));
  if (session.claimants > 0) session.name_space.groups.disconnected(session);
}

void Sessions::stop(const std::string& reason) {
  is_stopping_ = true;
  for (const ConnectionId connection : connections_.all()) {
    change_connection(*connections_.session_on(connection), 0);
    services_.effects().add(SendGoodbye{connection, reason});
    connections_.close(connection, failure(ErrorCode::unavailable, reason));
  }
}

void Sessions::expire(Session& session) {
  const Instant deadline = expiry_of(services_, session);
  if (deadline > services_.now()) return services_.timers().arm(session.liveness.expiry, deadline);
  // What came to its end first: the grace, or the whole timeout?
  const Duration left = services_.options().limits.session_timeout - services_.silence(session);
  const bool was_closed = deadline - services_.now() < left;
  Error why = failure(ErrorCode::session_expired,
                      "nothing was heard of it for " + in_seconds(services_.silence(session)));
  const std::string how =
      was_closed ? "its connection ended and it did not come back" : "it was silent for too long";
  const LogLevel level = session.role == wire::Role::observer ? LogLevel::debug : LogLevel::info;
  services_.effects().log(level,
                          "session " + std::to_string(session.id) + " of " +
                              describe(session.process) + " is lost: " + how,
                          session.account.unit.name);
  end(session, std::move(why), was_closed ? LossCause::closed : LossCause::heartbeat);
}

void Sessions::end(Session& session, Error why, LossCause cause, Fencing fencing) {
  if (session.ended) return;
  if (why.decided_by.empty()) why.decided_by = "server";
  past_.add_ended(session, why, fencing);
  if (session.connection != 0) {
    tell_why(services_.effects(), session, why, Over::session);
    connections_.close(session.connection, why);
    change_connection(session, 0);
  }
  end(session, cause, cause == LossCause::reported ? &why : nullptr);
}

void Sessions::break_off(Session& session, std::string breach) {
  Error why = failure(ErrorCode::protocol_error, std::move(breach));
  why.decided_by = "server";
  tell_why(services_.effects(), session, why, Over::connection);
  connections_.close(session.connection, std::move(why));
  detach(session, DisconnectCause::closed);
}

/// Touches only what the session owns.
void Sessions::end(Session& session, LossCause cause, const Error* why) {
  const auto owned = sessions_.find(session.id);
  session.ended = cause;
  session.liveness.expiry.disarm();
  services_.forget(session);
  session.of_process.leave();
  session.of_unit.leave();
  std::erase(operators_, &session);
  const auto process = processes_.find(session.process.id);
  if (process != processes_.end() && process->second.empty()) processes_.erase(process);
  services_.counted().tallies.count_ended_session(cause);
  if (session.is_guest) --guests_count_;

  NameSpace& name_space = session.name_space;
  name_space.sessions_by_id.erase(session.id);
  const bool is_observer = session.role == wire::Role::observer;
  if (!is_observer || !name_space.idle_lifetime) name_space.idle_since = services_.now();
  ended_.push_back(std::move(owned->second));
  sessions_.erase(owned);
  name_space.table.session_ended(session);
  name_space.groups.session_ended(session, cause, why);
  if (is_observer) {
    --observers_count_;
  } else if (--name_space.run.sessions == 0 && name_space.idle_lifetime == Duration::zero()) {
    end_observers(name_space);
  }
}

/// Nobody else is in the namespace: they would keep the keys of a run that is over.
void Sessions::end_observers(NameSpace& name_space) {
  const std::map<std::uint64_t, Session*> observers = name_space.sessions_by_id;
  for (const auto& [id, observer] : observers) {
    Error why = failure(ErrorCode::session_expired, "the run of its namespace is over");
    end(*observer, std::move(why), LossCause::none);
  }
}

void Sessions::bury() {
  while (!ended_.empty()) {
    NameSpace& name_space = ended_.back()->name_space;
    Account& account = ended_.back()->account;
    ended_.pop_back();
    --account.sessions_count;
    name_spaces_.units().session_gone(account.unit);
    name_spaces_.session_gone(name_space, account);
  }
}

std::vector<Session*> Sessions::of_process(const ProcessId& process, const Session& viewer) {
  std::vector<Session*> found;
  if (const auto sessions = processes_.find(process); sessions != processes_.end()) {
    for (Session& session : sessions->second) {
      if (&session.name_space != &viewer.name_space) continue;
      if (viewer.may_see(session.tenant())) found.push_back(&session);
    }
  }
  return found;
}

void Sessions::add_counts(Counts& counts) const {
  counts.sessions += sessions_.size();
  counts.observers += observers_count_;
  counts.connections += connections_.count();
}

/// Those that have ended stay until groups have gone, too: when memory was out as one ended, its
/// groups may not have heard of it.
void Sessions::release() {
  const auto release_one = [](Session& session) {
    session.requests.parked.clear();
    session.requests.unacknowledged.drain([](auto) {});
  };
  for (const auto& session : ended_) release_one(*session);
  for (const auto& [id, session] : sessions_) release_one(*session);
}

}  // namespace muster::core
