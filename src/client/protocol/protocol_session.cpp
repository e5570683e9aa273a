// How a session begins, breaks and ends:
//
//   open -> connect -> our hello, its hello -> established
//   established -> (lost) -> connect -> our hello with session and token, its hello -> established
//   its hello says that the session is no more -> over -> reopen
//
// Hellos that only say "not now" are failed attempts. Whoever says something that is no hello
// is not our server: before the first session that is final, since the address must be wrong.

#include "client/protocol/protocol.h"

namespace muster::client::protocol {
namespace {

bool is_passing(ErrorCode status) {
  return status == ErrorCode::busy || status == ErrorCode::resource_exhausted ||
         status == ErrorCode::unavailable;
}

/// A hello has one text for why and by whom.
std::string decider_of(const Error& error) {
  constexpr std::string_view by = " by ";
  const auto at = error.detail.find(by);
  const bool named = error.code == ErrorCode::fenced && at != std::string::npos;
  return named ? error.detail.substr(at + by.size()) : "server";
}

}  // namespace

Protocol::Protocol(Options options)
    : options_(std::move(options)),
      link_(Backoff(options_.backoff_min, options_.backoff_max, options_.jitter_seed),
            options_.hello_timeout) {}

Protocol::Protocol(const Protocol& broken, Error why) : Protocol(broken.options_) {
  forget_session();
  last_id_ = broken.last_id_;
  block_ = Block::over;
  failure_ = std::move(why);
}

void Protocol::open(Instant now) {
  if (block_ != Block::none || link_.phase() != Link::Phase::idle) return;
  last_trouble_ = error_of(ErrorCode::unavailable, "no attempt has come to an end yet");
  last_event_ = now;
  link_.open(now);
  do_what_is_due(now);
}

void Protocol::reopen(Instant now) {
  if (block_ != Block::over) return;
  block_ = Block::none;
  open(now);
}

void Protocol::close(Instant now) {
  if (block_ == Block::closed) return;
  if (established()) wire::append_goodbye(outgoing(), "closed");
  has_session_ = false;
  if (established() || link_.is_attempting()) emit(Disconnect{});
  forget_connection();
  link_.close();
  letters_.clear();
  block_ = Block::closed;
  failure_ = error_of(ErrorCode::closed, "the store was closed");
  end_all_calls(failure_, now);
}

void Protocol::on(const Connected&, Instant now) {
  if (link_.phase() != Link::Phase::connecting) return;
  link_.greet(now);
  if (last_trouble_.code == ErrorCode::unavailable) {
    last_trouble_.detail = "it takes connections, but has not answered the hello yet";
  }
  wire::append_client_hello(outgoing(), options_.identity);
}

void Protocol::on(const ConnectFailed& input, Instant now) {
  if (link_.phase() != Link::Phase::connecting) return;
  const bool refused = input.kind == ConnectFailure::refused;
  fail_attempt(refused ? Attempt::refused : Attempt::silent,
               error_of(ErrorCode::unavailable, input.detail), now);
}

void Protocol::on(const Disconnected& input, Instant now) {
  std::string detail = input.detail;
  if (detail.empty()) detail = input.by_peer ? "the other side closed it" : "it broke";
  if (established()) {
    lose_connection(error_of(ErrorCode::unavailable, "the connection was lost: " + detail), now);
  } else if (link_.is_attempting()) {
    fail_attempt(Attempt::silent,
                 error_of(ErrorCode::unavailable, "closed before its hello: " + detail), now);
  }
}

void Protocol::read_hello(Instant now) {
  const std::string_view bytes = inbox_.rest();
  if (Result<void> start = wire::check_magic(bytes); !start) {
    return meet_stranger(std::move(start).error(), now);
  }
  if (bytes.size() < wire::server_hello_bytes) return;
  auto hello = wire::decode_server_hello(bytes.substr(0, wire::server_hello_bytes));
  if (!hello) return meet_stranger(std::move(hello).error(), now);
  inbox_.consume(wire::server_hello_bytes);
  if (hello->status == 0) {
    accept(*std::move(hello), now);
  } else {
    refuse(*hello, now);
  }
}

void Protocol::accept(wire::ServerHello hello, Instant now) {
  if (has_session_ && !hello.resumed) {
    // It should have refused; so at least we do.
    const bool same = hello.incarnation == server_.incarnation;
    hello.status =
        static_cast<std::uint16_t>(same ? ErrorCode::session_expired : ErrorCode::server_restarted);
    return refuse(hello, now);
  }
  const bool resumed = has_session_;
  server_ = std::move(hello);
  has_session_ = true;
  options_.identity.incarnation = server_.incarnation;
  options_.identity.session_id = server_.session_id;
  options_.identity.token = server_.token;
  lease_.begin(link_.began());
  link_.establish();
  parting_.clear();
  heartbeat_at_ = now + heartbeat_interval();
  settle_block(now);
  emit(Established{resumed});
  if (resumed) log(LogLevel::info, "resumed the session at " + options_.where);
  send_again(now);
  send_queued(now);
}

void Protocol::refuse(const wire::ServerHello& hello, Instant now) {
  Error why = error_of(static_cast<ErrorCode>(hello.status), hello.detail);
  why.decided_by = decider_of(why);
  if (is_passing(why.code)) {
    emit(Disconnect{});
    return fail_attempt(Attempt::answered, std::move(why), now);
  }
  if (why.code == ErrorCode::server_restarted) {
    why.expected = options_.identity.incarnation;
    why.actual = hello.incarnation;
  }
  end_session(std::move(why), now);
}

void Protocol::meet_stranger(Error error, Instant now) {
  Error why = error_of(error.code, std::move(error.detail));
  why.expected = error.expected;
  why.actual = error.actual;
  if (!has_session_) return end_session(std::move(why), now);
  emit(Disconnect{});
  end_all_calls(why, now);
  fail_attempt(Attempt::refused, std::move(why), now);
}

void Protocol::fail_attempt(Attempt attempt, Error why, Instant now) {
  log(LogLevel::debug, "cannot connect to " + options_.where + ": " + why.detail);
  last_trouble_ = std::move(why);
  forget_connection();
  link_.fail(attempt, now);
}

void Protocol::lose_connection(Error why, Instant now) {
  log(LogLevel::info, "the connection to " + options_.where + " ended: " + why.detail);
  last_trouble_ = std::move(why);
  lost_ = now;
  forget_connection();
  link_.lose(now);
}

void Protocol::forget_session() {
  options_.identity.incarnation = 0;
  options_.identity.session_id = 0;
  options_.identity.token = {};
}

void Protocol::end_session(Error why, Instant now) {
  const bool there_was_one = has_session_;
  if (established() || link_.is_attempting()) emit(Disconnect{});
  forget_connection();
  link_.close();
  letters_.clear();
  has_session_ = false;
  parting_.clear();
  forget_session();
  block_ = Block::over;
  failure_ = std::move(why);
  log(LogLevel::warning, "the session at " + options_.where + " is over: " +
                             std::string(name_of(failure_.code)) + ": " + failure_.detail);
  end_all_calls(failure_, now);
  if (there_was_one) emit(Notify{{wire::EventKind::session_ended, 0, failure_}});
}

void Protocol::forget_connection() {
  inbox_.drop_rest();
  inbox_.settle();
  parts_of_ = 0;
  std::string().swap(parts_);
  letters_.connection_lost();
  lease_.connection_lost();
  maybe_parked_.clear();
}

}  // namespace muster::client::protocol
