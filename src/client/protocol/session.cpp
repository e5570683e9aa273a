#include "client/protocol/session.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace muster::client::protocol {
namespace {

/// A hello has one text for why and by whom.
std::string decider_of(const Error& error) {
  constexpr std::string_view by = " by ";
  const auto at = error.detail.find(by);
  const bool named = error.code == ErrorCode::fenced && at != std::string::npos;
  return named ? error.detail.substr(at + by.size()) : "server";
}

constexpr auto no_attempt_yet = "no attempt has come to an end yet";
constexpr auto no_hello_yet = "it takes connections, but has not answered the hello yet";

}  // namespace

Session::Session(Options options) : options_(std::move(options)) {}

Session::Session(const Session& broken, Error why) : options_(broken.options_) {
  forget_identity();
  admission_ = Admission::over;
  failure_ = std::move(why);
}

void Session::open() {
  admission_ = Admission::open;
  was_refused_ = false;
  last_trouble_ = error_of(ErrorCode::unavailable, no_attempt_yet);
}

void Session::connected() {
  if (last_trouble_.code != ErrorCode::unavailable) return;
  std::string& detail = last_trouble_.detail;
  if (detail.ends_with(no_hello_yet)) return;
  // The reason of an earlier attempt stays: the server may have given it.
  detail = detail == no_attempt_yet ? no_hello_yet : detail + "; now " + no_hello_yet;
}

void Session::connection_lost(Error why, Instant now) {
  last_trouble_ = std::move(why);
  lost_ = now;
}

void Session::accept(wire::ServerHello hello) {
  server_ = std::move(hello);
  frame_limits_ = {server_.limits.reply_bytes_max(), server_.limits.request_bytes_max()};
  exists_ = true;
  options_.identity.incarnation = server_.incarnation;
  options_.identity.session_id = server_.session_id;
  options_.identity.token = server_.token;
  parting_.clear();
}

void Session::end(Error why) {
  exists_ = false;
  parting_.clear();
  forget_identity();
  admission_ = Admission::over;
  failure_ = std::move(why);
}

void Session::close() {
  exists_ = false;
  admission_ = Admission::closed;
  failure_ = error_of(ErrorCode::closed, "the store was closed");
}

void Session::forget_identity() {
  options_.identity.incarnation = 0;
  options_.identity.session_id = 0;
  options_.identity.token = {};
}

Admission Session::due_admission(const ConnectionState& connection, const Lease& lease,
                                 Instant now) const {
  if (admission_ == Admission::over || admission_ == Admission::closed) return admission_;
  if (!exists_) return Admission::open;
  if (connection.waits_for_restart()) {
    return now >= gives_up_at() ? Admission::unavailable : Admission::open;
  }
  return now >= suspends_at(lease) ? Admission::suspended : Admission::open;
}

void Session::admit_no_more(Admission due, Error why) {
  admission_ = due;
  failure_ = std::move(why);
}

Instant Session::next_deadline(const ConnectionState& connection, const Lease& lease) const {
  if (!exists_ || admission_ != Admission::open) return base::far_future;
  return connection.waits_for_restart() ? gives_up_at() : suspends_at(lease);
}

Instant Session::suspends_at(const Lease& lease) const {
  return lease.proven() + server_.limits.session_timeout * 4 / 5;
}

Instant Session::gives_up_at() const {
  return lost_ + (has_host() ? server_.limits.grace : options_.unavailable_after);
}

// Errors.

Error Session::error_of(ErrorCode code, std::string detail) const {
  Error error;
  error.code = code;
  error.where = options_.where;
  error.detail = std::move(detail);
  return error;
}

Error Session::refusal(const wire::ServerHello& hello) const {
  Error why = error_of(static_cast<ErrorCode>(hello.status), hello.detail);
  why.decided_by = decider_of(why);
  if (why.code == ErrorCode::server_restarted) {
    why.expected = options_.identity.incarnation;
    why.actual = hello.incarnation;
  }
  return why;
}

Error Session::unreachable(Duration silence) const {
  Error error = error_of(last_trouble_.code, last_trouble_.detail);
  if (!parting_.empty() && error.detail != parting_) error.detail = parting_ + "; " + error.detail;
  blame_host(error, LossCause::closed, silence);
  return error;
}

Error Session::suspension(const Lease& lease, const Liveness& liveness, Instant now) const {
  const std::string since = base::rounded(now - lease.proven());
  Error error = error_of(ErrorCode::suspended,
                         "nothing that was sent in the last " + since + " was answered");
  if (liveness.did_not_run(now) || liveness.has_just_run_again(lease.proven(), now)) {
    error.detail = "this process itself did not run; " + error.detail;
  } else if (has_host()) {
    error.code = ErrorCode::unavailable;
    blame_host(error, LossCause::heartbeat, liveness.silence(now));
  }
  return error;
}

bool Session::has_host() const { return exists_ && !(server_.hosting_process.id == ProcessId{}); }

void Session::blame_host(Error& error, LossCause cause, Duration silence) const {
  if (!has_host()) return;
  RankReport host;
  host.rank = server_.hosting_rank;
  host.joined = true;
  host.process = server_.hosting_process;
  host.silence = silence;
  host.cause = cause;
  error.ranks.push_back(std::move(host));
  if (server_.hosting_rank >= 0) {
    error.rank_ranges.push_back({server_.hosting_rank, server_.hosting_rank});
  }
  error.cause = cause;
}

}  // namespace muster::client::protocol
