#include "oracle.h"

#include <algorithm>

// What is due, and whether it came. What is allowed is in oracle_errors.cpp.

namespace muster::sim {
namespace {

using namespace std::chrono_literals;

/// The time that a healed process may take to be of use again, by the case table.
constexpr Duration healing = 2s;
/// What the steps of the rims and the looking itself may add.
constexpr Duration margin = 700ms;
/// What the clocks of a machine and of the world may differ in one instant.
constexpr Duration rounding = 1ms;

/// As docs/protocol.md says, and not as the table of operations does.
bool may_be_parked(wire::Operation operation) {
  switch (operation) {
    case wire::operation<wire::Get>:
    case wire::operation<wire::Take>:
    case wire::operation<wire::QueuePop>:
    case wire::operation<wire::Wait>:
    case wire::operation<wire::Join>:
    case wire::operation<wire::Regroup>:
    case wire::operation<wire::CollectiveCall>:
    case wire::operation<wire::Receive>:
    case wire::operation<wire::Recover>: return true;
    default: return false;
  }
}

}  // namespace

Oracle::Oracle(Scheduler& scheduler, Trace& trace, Terms terms)
    : keys(*this),
      queues(*this),
      groups(*this),
      scheduler_(scheduler),
      trace_(trace),
      terms_(terms) {
  lives_.emplace_back();  // clients are counted from 1
}

void Oracle::problem(const std::string& what) {
  if (problems_.empty()) {
    trace_.note(now(), "WRONG", problems_.size(), [&] { return what; });
  }
  problems_.push_back(what);
  scheduler_.stop();
}

Life& Oracle::born(Life life) {
  life.born = now();
  life.name = std::to_string(life.slot) + "." + std::to_string(life.client);
  return lives_.emplace_back(std::move(life));
}

void Oracle::died(std::uint64_t client) {
  lives_[client].died = now();
  for (auto each = pending_.begin(); each != pending_.end();) {
    each = each->second.client == client ? pending_.erase(each) : std::next(each);
  }
}

void Oracle::disturbed(std::uint64_t client, Instant from, Instant until) {
  lives_[client].disturbances.emplace_back(from, until);
}

void Oracle::server_disturbed(Instant from, Instant until) {
  server_disturbances_.emplace_back(from, until);
}

void Oracle::server_stops(Instant until) {
  paused_from_ = now();
  paused_until_ = until;
  scheduler_.at(until, [this, until] {
    if (paused_until_ != until) return;
    paused_ += until - paused_from_;
    paused_until_ = {};
  });
  server_disturbed(now(), until + healing);
}

/// Time as the server's process has lived through it.
Duration Oracle::running() const {
  const Instant until = paused_until_ > now() ? paused_from_ : now();
  return until.time_since_epoch() - paused_;
}

void Oracle::server_died() {
  died_at_ = now();
  is_down_ = true;
  for (Life& life : lives_) {
    if (life.heard) life.longest_silence = std::max(life.longest_silence, running() - *life.heard);
    if (life.closed) life.longest_closed = std::max(life.longest_closed, running() - *life.closed);
    life.heard = life.closed = std::nullopt;
  }
  paused_until_ = {};
}

void Oracle::server_started() {
  ++restarts_;
  is_down_ = false;
  server_disturbed(died_at_, now() + 1500ms);
  const Duration latest = longer(1500ms) + 8 * terms_.delay_max;
  scheduler_.after(latest, [this, since = now()] { look_after_restart(since); });
}

/// All have to know by now that it is another server.
void Oracle::look_after_restart(Instant since) {
  if (is_down_ || died_at_ > since) return;  // another one since
  for (const auto& [number, ask] : pending_) {
    if (ask.incarnation == 0 || ask.begun >= since) continue;
    if (!lives_[ask.client].is_calm(died_at_ - 5s, now()) || paused_until_ > since) continue;
    return problem(lives_[ask.client].name + " " + ask.what + " hears nothing of the restart");
  }
}

void Oracle::revoked(std::uint64_t client, Instant until) {
  lives_[client].revoked_until = until;
  disturbed(client, now(), until + healing);
}

void Oracle::must_be_known_gone(std::uint64_t client) {
  const Duration latest = longer(500ms) + 4 * terms_.delay_max;
  scheduler_.after(latest, [this, client, since = now()] {
    if (server_is_calm(since - 1s, now())) look_for_those_who_wait_for(client, since);
  });
}

void Oracle::look_for_those_who_wait_for(std::uint64_t client, Instant since) {
  for (const auto& [number, ask] : pending_) {
    const bool waits = ask.operation == wire::operation<wire::CollectiveCall> ||
                       ask.operation == wire::operation<wire::Receive>;
    if (!waits || ask.begun >= since || ask.client == client) continue;
    if (!lives_[ask.client].is_calm(since - 4s, now())) continue;
    const GroupModel::Number epoch{ask.incarnation, ask.epoch};
    if (ask.round != 0 && groups.may_be_done(epoch, ask.round)) continue;
    if (groups.may_have_left(ask.group, client)) continue;  // before: nothing of it is lost
    for (const auto& [rank, member] : groups.members(epoch)) {
      if (member != client) continue;
      return problem(lives_[ask.client].name + " " + ask.what + " waits although rank " +
                     std::to_string(rank) + "'s session was ended");
    }
  }
}

bool Oracle::server_is_calm(Instant from, Instant until) const {
  for (const auto& [begin, end] : server_disturbances_) {
    if (begin <= until && end >= from) return false;
  }
  return !is_down_ || died_at_ > until;
}

void Oracle::heard(std::uint64_t client) {
  Life& life = lives_[client];
  if (life.heard) life.longest_silence = std::max(life.longest_silence, running() - *life.heard);
  if (life.closed) life.longest_closed = std::max(life.longest_closed, running() - *life.closed);
  life.heard = running();
  life.closed = std::nullopt;
}

void Oracle::lost_connection(std::uint64_t client) {
  Life& life = lives_[client];
  // A process that lives does not end its connection while its session goes on: that is no cause.
  const bool has_cause = life.died || life.said_goodbye || life.broken_at + 1s > now() ||
                         !server_is_calm(now() - 1s, now());
  if (!life.closed && has_cause) life.closed = running();
  life.was_away = true;
}

const Life* Oracle::life_of(const ProcessId& process, std::uint64_t client) const {
  for (const Life& life : lives_) {
    if (life.client == 0 || life.process != process) continue;
    if (life.name_space == lives_[client].name_space) return &life;
  }
  return nullptr;
}

std::string Oracle::group_id(std::uint64_t client, const std::string& group) const {
  return lives_[client].name_space + "/" + group;
}

Duration Oracle::longer(Duration duration) const {
  return duration + Duration(static_cast<Duration::rep>(static_cast<double>(duration.count()) *
                                                        2.1 * terms_.drift));
}

Duration Oracle::shorter(Duration duration) const {
  return duration -
         Duration(static_cast<Duration::rep>(static_cast<double>(duration.count()) * 2.1 *
                                             terms_.drift)) -
         1ms;
}

std::uint64_t Oracle::begun(Ask ask) {
  ask.begun = now();
  const std::uint64_t number = ++last_ask_;
  trace_.note(now(), lives_[ask.client].name, number, [&] {
    return ask.what + " begins, timeout " +
           std::to_string(static_cast<double>(ask.timeout.count()) / 1e6) + " s";
  });
  latest_.emplace(ask.begun + longer(ask.timeout + terms_.limits.slack) + rounding, number);
  pending_.emplace(number, std::move(ask));
  return number;
}

void Oracle::cancels(std::uint64_t number) {
  const auto found = pending_.find(number);
  if (found != pending_.end()) found->second.is_cancelled = true;
}

Ask Oracle::ended(std::uint64_t number, const Error* error, client::protocol::Fate fate,
                  std::uint64_t incarnation) {
  const Ask ask = std::move(pending_.at(number));
  pending_.erase(number);
  ++calls_ended_count;
  const auto code = error == nullptr ? 0u : static_cast<unsigned>(error->code);
  trace_.note(now(), lives_[ask.client].name, number * 128 + code,
              [&] { return ask.what + " -> " + (error == nullptr ? "ok" : error->message()); });
  const bool is_answered = fate == client::protocol::Fate::answered;
  if (is_answered && ask.incarnation != 0 && ask.incarnation != incarnation) {
    problem(ask.what + " of an old session was answered by another start of the server");
  }
  if (error == nullptr) return ask;
  if (error->operation.empty() || error->decided_by.empty()) {
    problem(ask.what + ": its error does not say what and by whom");
  }
  check_elapsed(ask, *error);
  // A regroup speaks of the ranks of the next epoch.
  const bool of_next = takes_part_in_regroup(ask.operation) &&
                       (error->code == ErrorCode::rank_lost || error->code == ErrorCode::rank_left);
  if (!of_next) check_places(*error, ask.incarnation, ask.client);
  if (!is_allowed(ask, *error)) {
    problem(lives_[ask.client].name + " " + ask.what + " must not end so: " + error->message());
  }
  return ask;
}

void Oracle::told(std::uint64_t client, const Error& error, std::uint64_t incarnation) {
  trace_.note(now(), lives_[client].name, static_cast<unsigned>(error.code) + 1000u,
              [&] { return "is told: " + error.message(); });
  check_reports(client, error);
  check_places(error, incarnation, client);
  if (error.code == ErrorCode::rank_lost) check_loss(client, error);
  if (error.code == ErrorCode::rank_left) check_left(client, error);
}

void Oracle::may_fence() {
  for (Life& life : lives_) life.may_be_fenced = true;
}

void Oracle::look() {
  for (const auto& [number, ask] : pending_) {
    if (scheduler_.is_stopped()) return;
    look_for_the_server(ask);
    look_at(ask);
  }
}

/// The server does not come back: calls fail, at the latest after 30 s.
void Oracle::look_for_the_server(const Ask& ask) {
  if (!is_down_ || ask.incarnation == 0 || now() < died_at_ + longer(30s) + margin) return;
  const Life& life = lives_[ask.client];
  if (!life.is_calm(died_at_ - 5s, now())) return;
  problem(life.name + " " + ask.what + " waits although the server is gone for 30 s");
}

/// Its own process ends a call, also where nothing can be decided.
void Oracle::check_deadlines() {
  while (!latest_.empty() && latest_.top().first < now()) {
    const auto found = pending_.find(latest_.top().second);
    latest_.pop();
    if (found == pending_.end()) continue;
    const Ask& ask = found->second;
    const Life& life = lives_[ask.client];
    if (life.runs_again + rounding >= now()) {
      latest_.emplace(life.runs_again + rounding, found->first);
      continue;
    }
    return problem(life.name + " " + ask.what + " outlives its deadline");
  }
}

/// What is cut off says so.
void Oracle::look_at_end(const Ask& ask) {
  const Life& life = lives_[ask.client];
  if (life.runs_again > now() - margin) return;
  const wire::ServerLimits& limits = terms_.limits;
  const Duration suspends = longer(limits.session_timeout * 4 / 5 + limits.heartbeat) + margin;
  const Instant since = std::max(life.cut_since, life.runs_again);
  if (ask.incarnation == 0 || life.cut_until < now() || now() < since + suspends ||
      !server_is_calm(since - 3s, now())) {
    return;
  }
  problem(life.name + " " + ask.what + " waits although its process is cut off for long");
}

/// A call that is still pending: does it have a reason?
void Oracle::look_at(const Ask& ask) {
  look_at_end(ask);
  const Life& life = lives_[ask.client];
  const Duration settled = longer(healing) + margin + 4 * terms_.delay_max;
  const Instant since = now() - settled;
  if (ask.begun >= since || !life.is_calm(since, now()) || !server_is_calm(since, now())) return;
  if (!may_be_parked(ask.operation)) {
    return problem(life.name + " " + ask.what + " has no answer although all is well");
  }
  if (ask.operation != wire::operation<wire::CollectiveCall> &&
      ask.operation != wire::operation<wire::Receive>) {
    return;
  }
  if (ask.round != 0 && groups.is_overdue({ask.incarnation, ask.epoch}, ask.round)) {
    return problem(life.name + " " + ask.what + " waits past the round's earliest deadline");
  }
  if (ask.operation == wire::operation<wire::CollectiveCall> && !terms_.has_small_limits &&
      groups.is_source({ask.incarnation, ask.epoch}, ask.round, ask.client)) {
    return problem(life.name + " " + ask.what + " waits although it is the source");
  }
  if (ask.round != 0 && groups.is_left({ask.incarnation, ask.epoch}, ask.round, since)) {
    return problem(life.name + " " + ask.what + " waits for a rank that has left");
  }
  if (ask.round != 0 && groups.may_be_done({ask.incarnation, ask.epoch}, ask.round)) {
    if (!groups.is_confirmed({ask.incarnation, ask.epoch}, ask.round, ask.client, since)) return;
    return problem(life.name + " " + ask.what + " waits although all others are through");
  }
  look_for_the_dead(ask);
}

/// Whether the server must have given up its session by now.
bool Oracle::is_surely_lost(const Life& life, Instant then) const {
  if (!life.heard) return false;
  const wire::ServerLimits& limits = terms_.limits;
  Duration lost_at = *life.heard + longer(limits.session_timeout);
  if (life.closed) lost_at = std::min(lost_at, *life.closed + longer(limits.grace));
  return running() - (now() - then) >= lost_at + limits.slack + margin + 2 * terms_.delay_max;
}

/// Whether a member is surely lost by now, so that nobody may wait any more.
void Oracle::look_for_the_dead(const Ask& ask) {
  for (const auto& [rank, client] : groups.members({ask.incarnation, ask.epoch})) {
    const Life& other = lives_[client];
    if (other.client == ask.client || other.was_reported || !is_surely_lost(other, now())) continue;
    if (groups.may_have_left(ask.group, client) && other.said_goodbye) continue;
    problem(lives_[ask.client].name + " " + ask.what + " waits although rank " +
            std::to_string(rank) + " is dead");
  }
}

}  // namespace muster::sim
