// How a session begins, breaks and ends:
//
//   open -> connect -> our hello, its hello -> established
//   established -> (lost) -> connect -> our hello with session and token, its hello -> established
//   its hello says that the session is no more -> over -> open
//   established -> (silent) -> connect beside it -> heard again; or as after a loss, when its hello
//   has come on the new one: the old one is kept until then
//   established -> (newer key) -> connect beside it, while the old one serves on -> its hello ->
//   established on the new one; or the new key is refused, and is tried again later
//
// Hellos that only say "not now" are failed attempts. Whoever says something that is no hello
// is not our server: before the first session that is final, since the address must be wrong.
//
// The lease is looked at before anything else, also before bytes that have come: a process that
// was stopped for most of the session timeout must not use an answer from before.

#include "client/protocol/protocol.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/text.h"

namespace muster::client::protocol {
namespace {

bool is_passing(ErrorCode status) {
  return status == ErrorCode::busy || status == ErrorCode::resource_exhausted ||
         status == ErrorCode::unavailable;
}

/// Until when a server is awaited that is not there.
Instant awaits_server_until(const Session& session, const ConnectionState& connection) {
  const auto& wait = session.options().wait_for_server;
  if (session.exists() || !wait) return base::far_future;
  return base::deadline_after(connection.opened(), *wait);
}

/// Whether the server may have the session still.
bool may_be_held(const Session& session, const Lease& lease, Instant now) {
  return session.exists() && now < lease.proven() + session.server().limits.session_timeout;
}

/// The server does nothing for a new session before it knows that its client has read the hello.
/// That goes out with what the client says first, and costs no packet.
std::string echo_of(const wire::ResumeToken& token) {
  std::string echo;
  wire::append_echo(echo, token);
  return echo;
}

/// For a newer key another connection is tried so soon, with jitter, since all clients of a key may
/// get the newer one together; and again in so long, while the server does not know it yet.
constexpr Duration move_min = std::chrono::milliseconds(500);
constexpr Duration move_max = std::chrono::seconds(8);

ConnectionState unopened(const Options& options) {
  return {Backoff(options.backoff_min, options.backoff_max, options.jitter_seed),
          options.hello_timeout, Backoff(move_min, move_max, options.jitter_seed)};
}

}  // namespace

Protocol::Protocol(Options options)
    : connection_(unopened(options)),
      session_(std::move(options)),
      requests_(session_, connection_, lease_, effects_, 0) {}

Protocol::Protocol(const Protocol& broken, Error why)
    : connection_(unopened(broken.session_.options())),
      session_(broken.session_, std::move(why)),
      requests_(session_, connection_, lease_, effects_, broken.requests_.last_id()) {}

// What the rim asks for.

void Protocol::open(Instant now) {
  const Admission admission = session_.admission();
  const bool is_idle = connection_.phase() == ConnectionState::Phase::idle && !connection_.stands();
  if (!is_idle || (admission != Admission::open && admission != Admission::over)) return;
  session_.open();
  liveness_.note_event(now);
  connection_.open(now);
  do_what_is_due(now);
}

CallId Protocol::submit(const wire::RequestBody& body, Duration timeout, Instant now,
                        std::uint64_t user_data, Receipt receipt) {
  settle_admission(now);
  Call& call = requests_.add(body, timeout, user_data, now);
  call.receipt = receipt;
  const CallId id = call.id;
  if (const Error* const failure = session_.failure()) {
    const bool is_suspended = session_.admission() == Admission::suspended;
    requests_.end(id, is_suspended ? session_.suspension(lease_, liveness_, now) : *failure, now);
    return id;
  }
  requests_.queue(call, body);
  requests_.send_queued(now);
  requests_.end_overdue(liveness_.silence(now), now);
  requests_.send_abandons();
  return id;
}

CallId Protocol::submit_lasting(const wire::RequestBody& body, Instant now,
                                std::uint64_t user_data) {
  settle_admission(now);
  Call& call = requests_.add_lasting(body, user_data, now);
  const CallId id = call.id;
  const Admission admission = session_.admission();
  if (admission == Admission::over || admission == Admission::closed) {
    requests_.end(id, *session_.failure(), now);
    return id;
  }
  requests_.queue(call, body);
  requests_.send_queued(now);
  return id;
}

void Protocol::conclude(CallId id, Verdict verdict, Instant now) {
  requests_.conclude(id, verdict);
  requests_.send_queued(now);
}

void Protocol::cancel(CallId id, Instant now) {
  settle_admission(now);
  if (requests_.find(id) == nullptr) return;
  requests_.end(id, session_.error_of(ErrorCode::cancelled, "cancelled by its caller"), now);
  requests_.send_abandons();
  requests_.send_queued(now);
}

void Protocol::close(Instant now) {
  if (session_.admission() == Admission::closed) return;
  if (connection_.stands()) wire::append_goodbye(effects_.outgoing(), "closed");
  if (connection_.stands() || connection_.is_attempting()) effects_.add(Disconnect{});
  forget_connection();
  incoming_.attempt_lost();
  connection_.close();
  requests_.session_ended();
  session_.close();
  requests_.end_all(*session_.failure(), now);
}

// What the rim saw.

void Protocol::apply(const Input& input, Instant now) {
  liveness_.note_event(now);
  settle_admission(now);
  std::visit(
      [&](const auto& seen) {
        if constexpr (!std::is_same_v<decltype(seen), const Advance&>) on(seen, now);
      },
      input);
  do_what_is_due(now);
}

void Protocol::on(const Connected&, Instant now) {
  if (connection_.phase() != ConnectionState::Phase::connecting) return;
  connection_.greet(now);
  session_.connected();
  Transmit hello{{}, true};
  wire::append_client_hello(hello.bytes, session_.options().identity);
  effects_.add(std::move(hello));
}

void Protocol::on(const ConnectFailed& input, Instant now) {
  if (connection_.phase() != ConnectionState::Phase::connecting) return;
  const bool refused = input.kind == ConnectFailure::refused;
  const bool nobody_is_there = input.kind != ConnectFailure::silent;
  Error why = session_.error_of(ErrorCode::unavailable, input.detail);
  const Instant gives_up_at = awaits_server_until(session_, connection_);
  if (nobody_is_there && now >= gives_up_at) return end_session(std::move(why), now);
  fail_attempt(refused ? AttemptOutcome::refused : AttemptOutcome::silent, std::move(why), now);
  if (nobody_is_there) connection_.try_by(gives_up_at);
}

void Protocol::on(const Disconnected& input, Instant now) {
  std::string detail = input.detail;
  if (detail.empty()) detail = input.by_peer ? "the other side closed it" : "it broke";
  if (connection_.stands() && !input.of_attempt) {
    lose_connection(session_.error_of(ErrorCode::unavailable, "the connection was lost: " + detail),
                    now);
  } else if (connection_.is_attempting() && input.is_refused) {
    // A key that is exchanged may be known here first.
    const bool is_over = !may_be_held(session_, lease_, now);
    if (is_over && (session_.exists() || session_.refused_again())) {
      return end_session(session_.error_of(ErrorCode::permission_denied, std::move(detail)), now);
    }
    fail_attempt(AttemptOutcome::answered,
                 session_.error_of(ErrorCode::unavailable, std::move(detail)), now);
  } else if (connection_.is_attempting()) {
    fail_attempt(AttemptOutcome::silent,
                 session_.error_of(ErrorCode::unavailable, "closed before its hello: " + detail),
                 now);
  }
}

void Protocol::on(const NewKey&, Instant now) { connection_.move(now); }

// The session.

/// returns  whether it was good
bool Protocol::accept(wire::ServerHello hello, Instant now) {
  const bool resumes = session_.exists();
  if (resumes && !hello.resumed) {
    // It should have refused; so at least we do.
    const bool same = hello.incarnation == session_.server().incarnation;
    hello.status =
        static_cast<std::uint16_t>(same ? ErrorCode::session_expired : ErrorCode::server_restarted);
    refuse(hello, now);
    return false;
  }
  if (connection_.stands()) forget_connection();
  incoming_.take_over_attempt();
  session_.accept(std::move(hello));
  lease_.begin(connection_.began());
  connection_.establish();
  liveness_.begin(session_.server().limits, now);
  liveness_.hear(now);
  settle_admission(now);
  if (!resumes) {
    liveness_.prove();  // nothing is sent again
    effects_.go_first(echo_of(session_.server().token));
  }
  effects_.add(Established{resumes});
  if (resumes) {
    effects_.log(LogLevel::info, "resumed the session at " + session_.options().where);
  }
  requests_.send_again(now);
  requests_.send_queued(now);
  return true;
}

void Protocol::refuse(const wire::ServerHello& hello, Instant now) {
  Error why = session_.refusal(hello);
  // The session of a connection that stands is not over for a newer key that does not go with it.
  const bool may_pass = is_passing(why.code) || connection_.established();
  if (!may_pass) return end_session(std::move(why), now);
  effects_.add(Disconnect{Disconnect::Which::attempt});
  fail_attempt(AttemptOutcome::answered, std::move(why), now);
}

void Protocol::meet_stranger(Error error, Instant now) {
  Error why = session_.error_of(error.code, std::move(error.detail));
  why.expected = error.expected;
  why.actual = error.actual;
  if (!session_.exists()) return end_session(std::move(why), now);
  effects_.add(Disconnect{Disconnect::Which::attempt});
  if (!connection_.stands()) requests_.end_passing(why, now);
  fail_attempt(AttemptOutcome::refused, std::move(why), now);
}

void Protocol::fail_attempt(AttemptOutcome attempt, Error why, Instant now) {
  effects_.log(LogLevel::debug,
               "cannot connect to " + session_.options().where + ": " + why.detail);
  session_.attempt_failed(std::move(why));
  incoming_.attempt_lost();
  connection_.fail(attempt, now);
}

void Protocol::lose_connection(Error why, Instant now) {
  effects_.log(LogLevel::info,
               "the connection to " + session_.options().where + " ended: " + why.detail);
  session_.connection_lost(std::move(why), now);
  forget_connection();
  connection_.lose(now);
}

void Protocol::end_session(Error why, Instant now) {
  const bool there_was_one = session_.exists();
  if (connection_.stands() || connection_.is_attempting()) effects_.add(Disconnect{});
  forget_connection();
  incoming_.attempt_lost();
  connection_.close();
  requests_.session_ended();
  effects_.log(LogLevel::warning, "the session at " + session_.options().where + " is over: " +
                                      std::string(name_of(why.code)) + ": " + why.detail);
  session_.end(why);
  requests_.end_all(why, now);
  if (there_was_one) effects_.add(Notify{{wire::EventKind::session_ended, 0, std::move(why)}});
}

/// That stood.
void Protocol::forget_connection() {
  effects_.go_first({});
  incoming_.connection_lost();
  requests_.connection_lost();
  lease_.connection_lost();
  liveness_.connection_lost();
}

// Time.

void Protocol::do_what_is_due(Instant now) {
  if (established() && now >= liveness_.falls_silent_at(lease_)) {
    Error why =
        session_.error_of(ErrorCode::unavailable,
                          "the server is silent for " + base::rounded(liveness_.silence(now)));
    effects_.log(LogLevel::info,
                 "another connection to " + session_.options().where + " is tried: " + why.detail);
    session_.attempt_failed(std::move(why));
    connection_.doubt(now);
    liveness_.doubt();
  }
  if (connection_.attempt_is_overdue(now)) {
    const bool greeting = connection_.phase() == ConnectionState::Phase::greeting;
    effects_.add(Disconnect{Disconnect::Which::attempt, greeting && session_.exists()});
    fail_attempt(AttemptOutcome::silent,
                 session_.error_of(ErrorCode::unavailable,
                                   std::string(greeting ? "no hello came within "
                                                        : "no connection came about within ") +
                                       base::rounded(session_.options().hello_timeout)),
                 now);
  }
  settle_admission(now);
  if (connection_.attempt_is_due(now)) {
    connection_.connect(now);
    effects_.add(Connect{});
  }
  if (liveness_.heartbeat_is_due(now)) {
    requests_.send_heartbeat(now);
    liveness_.await_next_heartbeat(now);
  }
  requests_.end_overdue(liveness_.silence(now), now);
  requests_.send_abandons();
}

Instant Protocol::next_deadline() const {
  const Instant of_session = session_.next_deadline(connection_, lease_);
  const Instant silence = established() ? liveness_.falls_silent_at(lease_) : base::far_future;
  const Instant of_connection = std::min(connection_.next_deadline(), silence);
  return std::min(std::min(of_connection, requests_.next_wake()),
                  std::min(of_session, liveness_.next_heartbeat()));
}

void Protocol::settle_admission(Instant now) {
  const Admission due = session_.due_admission(connection_, lease_, now);
  if (due == session_.admission()) return;
  if (due == Admission::open) return session_.admit();
  Error why = due == Admission::suspended ? session_.suspension(lease_, liveness_, now)
                                          : session_.unreachable(liveness_.silence(now));
  effects_.log(LogLevel::warning, "no answer from " + session_.options().where + ": " + why.detail);
  session_.admit_no_more(due, why);
  requests_.end_passing(why, now);
}

}  // namespace muster::client::protocol
