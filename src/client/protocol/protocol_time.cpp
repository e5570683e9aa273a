// What is due when, and the errors of calls that end without an answer.
//
// The lease is looked at before anything else, also before bytes that have come: a process that
// was stopped for most of the session timeout must not use an answer from before.

#include <algorithm>

#include "base/text.h"
#include "client/protocol/protocol.h"

namespace muster::client::protocol {
namespace {

/// A server that asks for more would keep us busy with nothing else.
constexpr Duration heartbeat_min = std::chrono::milliseconds(10);

/// Frames are put together until they are so many: more would be moved more often than sent.
constexpr std::size_t joined_bytes_max = 16 * 1024;
constexpr std::size_t spare_bytes_max = 64 * 1024;

bool has_less_room(const std::string& a, const std::string& b) {
  return a.capacity() < b.capacity();
}

}  // namespace

void Protocol::apply(const Input& input, Instant now) {
  if (did_not_run(now)) {
    ran_again_ = now;
    heard_ = now;  // bytes may have come meanwhile
  }
  last_event_ = now;
  settle_block(now);
  std::visit([&](const auto& seen) { on(seen, now); }, input);
  do_what_is_due(now);
}

void Protocol::on(const Advance&, Instant) {}

/// A heartbeat was to be sent, and this process did not get to.
bool Protocol::did_not_run(Instant now) const {
  return established() && now - last_event_ > 2 * heartbeat_interval();
}

void Protocol::do_what_is_due(Instant now) {
  if (established() && now >= falls_silent_at()) {
    emit(Disconnect{.is_silent = true});
    lose_connection(
        error_of(ErrorCode::unavailable, "the server is silent for " + base::rounded(now - heard_)),
        now);
  }
  if (link_.attempt_is_overdue(now)) {
    const bool greeting = link_.phase() == Link::Phase::greeting;
    emit(Disconnect{.is_silent = greeting && has_session_});
    fail_attempt(Attempt::silent,
                 error_of(ErrorCode::unavailable,
                          std::string(greeting ? "no hello came within "
                                               : "no connection came about within ") +
                              base::rounded(options_.hello_timeout)),
                 now);
  }
  settle_block(now);
  if (link_.attempt_is_due(now)) {
    link_.connect(now);
    emit(Connect{});
  }
  if (established() && now >= heartbeat_at_) {
    send_heartbeat(now);
    heartbeat_at_ += heartbeat_interval();
    if (heartbeat_at_ <= now) heartbeat_at_ = now + heartbeat_interval();
  }
  end_overdue_calls(now);
  send_abandons();
}

Instant Protocol::next_deadline() const {
  Instant next = std::min(link_.next_deadline(), calls_.next_wake());
  if (has_session_ && block_ == Block::none) {
    next = std::min(next, waits_for_restart() ? gives_up_at() : suspends_at());
  }
  if (established()) next = std::min({next, heartbeat_at_, falls_silent_at()});
  return next;
}

std::vector<Effect> Protocol::take_effects(std::vector<Effect> spare) {
  spare.clear();
  return std::exchange(effects_, std::move(spare));
}

std::optional<Transmit> Protocol::take_transmit() {
  if (effects_.size() != 1 || !std::holds_alternative<Transmit>(effects_[0])) return std::nullopt;
  Transmit only = std::get<Transmit>(std::move(effects_[0]));
  effects_.clear();
  return only;
}

void Protocol::give_spare(std::string bytes) {
  if (bytes.capacity() > spare_bytes_max) return;
  const auto least = std::min_element(spare_bytes_.begin(), spare_bytes_.end(), has_less_room);
  if (has_less_room(*least, bytes)) *least = std::move(bytes);
}

/// Where the next frame goes: behind the last one, if nothing is to be done in between.
std::string& Protocol::outgoing() {
  if (!effects_.empty()) {
    auto* const last = std::get_if<Transmit>(&effects_.back());
    if (last != nullptr && last->bytes.size() < joined_bytes_max) return last->bytes;
  }
  const auto most = std::max_element(spare_bytes_.begin(), spare_bytes_.end(), has_less_room);
  emit(Transmit{std::exchange(*most, {})});
  std::string& bytes = std::get<Transmit>(effects_.back()).bytes;
  bytes.clear();
  return bytes;
}

Block Protocol::due_block(Instant now) const {
  if (block_ == Block::over || block_ == Block::closed) return block_;
  if (!has_session_) return Block::none;
  if (waits_for_restart()) return now >= gives_up_at() ? Block::unavailable : Block::none;
  return now >= suspends_at() ? Block::suspended : Block::none;
}

void Protocol::settle_block(Instant now) {
  const Block due = due_block(now);
  if (due == block_) return;
  block_ = due;
  if (due == Block::none) return;
  failure_ = due == Block::suspended ? suspension(now) : unreachable(now);
  log(LogLevel::warning, "no answer from " + options_.where + ": " + failure_.detail);
  end_all_calls(failure_, now);
}

void Protocol::end_overdue_calls(Instant now) {
  while (Call* const call = calls_.due(now)) {
    if (is_past_end(*call, now)) {
      end_call(call->id, overdue(*call, now), now);
    } else {
      calls_.wake_at(*call, call->deadline + server_.limits.slack);
    }
  }
}

/// Of a call whose deadline has passed: whether it waits no more. The slack is for the server's
/// own decision to arrive, so there is none when no server is there to decide.
bool Protocol::is_past_end(const Call& call, Instant now) const {
  if (now >= call.deadline + server_.limits.slack) return true;
  return call.is_sent() ? waits_for_restart() : !established();
}

Duration Protocol::heartbeat_interval() const {
  return std::max(server_.limits.heartbeat, heartbeat_min);
}

Instant Protocol::suspends_at() const {
  return lease_.proven() + server_.limits.session_timeout * 4 / 5;
}

Instant Protocol::gives_up_at() const {
  return lost_ + (has_host() ? server_.limits.grace : options_.unavailable_after);
}

/// When to try another connection: TCP alone may take as long to notice that a broken path has
/// healed as it was broken.
Instant Protocol::falls_silent_at() const {
  const auto since = lease_.waiting_since();
  if (!since) return base::far_future;
  return std::max(*since, heard_) + patience();
}

/// How long a server that can be reached may take to be heard.
Duration Protocol::patience() const {
  return std::max(server_.limits.session_timeout / 5, 2 * heartbeat_interval());
}

Error Protocol::error_of(ErrorCode code, std::string detail) const {
  Error error;
  error.code = code;
  error.where = options_.where;
  error.detail = std::move(detail);
  return error;
}

Error Protocol::unreachable(Instant now) const {
  Error error = error_of(last_trouble_.code, last_trouble_.detail);
  if (!parting_.empty() && error.detail != parting_) error.detail = parting_ + "; " + error.detail;
  blame_host(error, LossCause::closed, now);
  return error;
}

Error Protocol::suspension(Instant now) const {
  const std::string since = base::rounded(now - lease_.proven());
  Error error = error_of(ErrorCode::suspended,
                         "nothing that was sent in the last " + since + " was answered");
  if (did_not_run(now) || (ran_again_ > lease_.proven() && now - ran_again_ < patience())) {
    error.detail = "this process itself did not run; " + error.detail;
  } else if (has_host()) {
    error.code = ErrorCode::unavailable;
    blame_host(error, LossCause::heartbeat, now);
  }
  return error;
}

Error Protocol::overdue(const Call& call, Instant now) const {
  if (call.is_sent() && !waits_for_restart()) {
    std::string detail = "no answer came";
    if (!established()) detail += "; " + last_trouble_.detail;
    return error_of(ErrorCode::outcome_unknown, std::move(detail));
  }
  if (!established()) return unreachable(now);
  return error_of(ErrorCode::unavailable,
                  std::to_string(in_flight_count_) + " requests are in flight without an answer");
}

bool Protocol::has_host() const {
  return has_session_ && !(server_.hosting_process.id == ProcessId{});
}

/// Names the process that embeds the server, if one does.
void Protocol::blame_host(Error& error, LossCause cause, Instant now) const {
  if (!has_host()) return;
  RankReport host;
  host.rank = server_.hosting_rank;
  host.joined = true;
  host.process = server_.hosting_process;
  host.silence = now - heard_;
  error.ranks.push_back(std::move(host));
  if (server_.hosting_rank >= 0) {
    error.rank_ranges.push_back({server_.hosting_rank, server_.hosting_rank});
  }
  error.cause = cause;
}

}  // namespace muster::client::protocol
