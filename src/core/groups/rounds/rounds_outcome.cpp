#include <algorithm>

#include "core/groups/rounds/rounds.h"
#include "core/session/failure.h"

// How rounds are decided, confirmed and freed.

namespace muster::core {
namespace {

void log_wait(EngineServices& services, const Roster& roster, const Round& round,
              const Awaited& awaited) {
  const std::string call = "group " + quoted_text(roster.group) + " epoch " +
                           std::to_string(roster.epoch) + " round " + std::to_string(round.number) +
                           ": " + text_of(round.call);
  const Duration waited = services.now() - round.opened;
  const std::string age = in_seconds(std::chrono::floor<std::chrono::milliseconds>(waited));
  const std::string ranks = base::text_of(awaited.ranks);
  if (round.state == Round::State::done) {
    services.effects().log(LogLevel::warning, call + " is done, but waits for " + age +
                                                  ", not confirmed by: " + ranks);
  } else if (awaited.older_rounds != 0) {
    services.effects().log(LogLevel::warning, call + " waits for " + age + " behind " +
                                                  std::to_string(awaited.older_rounds) +
                                                  " open rounds, the oldest missing: " + ranks);
  } else {
    services.effects().log(LogLevel::warning, call + " waits for " + age + ", missing: " + ranks);
  }
}

}  // namespace

void Rounds::decide_failed(Error error) {
  if (undecided() != nullptr) fail(*open_.back(), std::move(error));
}

void Rounds::fail(Round& round, Error error) {
  error.round = round.number;
  const bool is_told_anyway = error.code == ErrorCode::rank_left;
  if (!is_told_anyway) roster_.record(GroupEventKind::round_failed, &error);
  round.failure = make_failure(quota_, error);
  round.state = Round::State::failed;
  last_failure_ = {round.failure, round.call, services_.now(), true};
  round.values.clear();
  settle(round);
}

void Rounds::break_off(const Failure& failure) {
  if (undecided() == nullptr) return;
  const std::unique_ptr<Round> round = std::move(open_.back());
  open_.pop_back();
  round->failure = failure;
  round->state = Round::State::failed;
  settle(*round);
}

void Rounds::close(const Failure& failure) {
  while (!open_.empty()) {
    const std::unique_ptr<Round> round = std::move(open_.front());
    open_.pop_front();
    const bool open = round->is_open();
    while (!round->waits.empty()) {
      RoundWait& wait = round->waits.first();
      if (open) {
        round->state = Round::State::failed;
        round->failure = wait.member.standing == Standing::fenced ? roster_.fenced : failure;
      }
      services_.answer(wait.parked, answers_.outcome(wait));
    }
  }
}

/// All that was asked for is there: the outcome is what every rank of the round gets.
void Rounds::finish(Round& round) {
  if (round.call.gathers() && !round.values.gather(round.number, round.call)) {
    quota_.set_short(true);
    services_.counted().tallies.refusals.count(Limit::system_memory);
    Error error = answers_.error(ErrorCode::resource_exhausted, round);
    error.detail = "the system gives the server no memory for the values of all ranks";
    error.actual = round.values.bytes();
    return fail(round, std::move(error));
  }
  round.state = Round::State::done;
  last_failure_.is_last = false;
  round.values.let_age();
  settle(round);
}

/// Answers all who wait, but the rank that leaves a barrier last.
void Rounds::settle(Round& round) {
  round.timer.disarm();
  round.place.leave();
  Chain<RoundWait> waits;
  waits.append_all(round.waits);
  while (!waits.empty()) {
    RoundWait& wait = waits.first();
    if (wait.recovery == nullptr && answers_.is_withheld(round, wait.member)) {
      round.waits.append(wait.link);
    } else {
      services_.answer(wait.parked, answers_.outcome(wait));
    }
  }
  if (!round.waits.empty()) services_.timers().arm(round.timer, round.log_next);
}

/// Lets the rank that leaves the barrier last go, once all others have confirmed.
void Rounds::confirm(Round& round) {
  if (round.state != Round::State::done || answers_.unconfirmed_count(round) != 0) return;
  round.timer.disarm();
  while (!round.waits.empty()) {
    RoundWait& wait = round.waits.first();
    services_.answer(wait.parked, answers_.outcome(wait));
  }
}

void Rounds::acknowledged(Member& member, std::uint64_t number) {
  const Round* open = undecided();
  const std::uint64_t last = open != nullptr ? open->number : member.next_round;
  if (number >= last) number = last - 1;
  if (number >= member.next_round) number = member.next_round - 1;
  const std::uint64_t before = member.acknowledged_round;
  if (number <= before) return;
  member.acknowledged_round = number;
  if (open_.empty()) return;
  const std::uint64_t oldest = open_.front()->number;
  const std::uint64_t newest = std::min(number, open_.back()->number);
  for (std::uint64_t each = std::max(before + 1, oldest); each <= newest; ++each) {
    Round& round = *open_[each - oldest];
    --round.unacknowledged_count;
    round.values.drop(member.rank);
    confirm(round);
  }
  free_acknowledged();
}

void Rounds::member_gone(const Member& member) {
  for (std::size_t index = 0; index < open_.size(); ++index) {
    Round& round = *open_[index];
    if (round.number <= member.acknowledged_round) continue;
    --round.unacknowledged_count;
    if (!round.is_open()) round.values.drop(member.rank);
    confirm(round);
  }
  free_acknowledged();
}

void Rounds::free_acknowledged() {
  while (!open_.empty() && open_.front()->unacknowledged_count == 0 && !open_.front()->is_open()) {
    open_.front().reset();
    open_.pop_front();
  }
  if (undecided() == nullptr) return;
  Round& last = *open_.back();
  const bool complete = last.source_called || last.arrived_count == roster_.world_size();
  if (complete && is_admitted(last)) finish(last);
}

void RoundWait::timed_out() { round.rounds.timed_out(*this); }

void RoundWait::abandoned() { round.rounds.abandoned(*this); }

std::string RoundWait::target() const {
  return text_of(member.roster) + " round " + std::to_string(round.number) + " " +
         text_of(round.call);
}

Awaited Rounds::awaited(const Round& round) const {
  if (round.state == Round::State::done) return {answers_.unconfirmed(round), 0};
  Awaited awaited{answers_.missing(round), 0};
  if (!awaited.ranks.empty() || is_admitted(round)) return awaited;
  const std::uint64_t oldest = open_.front()->number;
  Error error;
  answers_.blame_for(oldest, error);
  return {std::move(error.rank_ranges), static_cast<std::uint32_t>(round.number - oldest)};
}

void Rounds::timed_out(RoundWait& wait) {
  Round& round = wait.round;
  if (!round.is_open()) return services_.answer(wait.parked, answers_.outcome(wait));
  Error error = answers_.late_error(round, awaited(round), wait.member, wait.parked.timeout);
  if (wait.recovery != nullptr) {
    return services_.fail(wait.parked, std::move(error));
  }
  fail(round, std::move(error));
}

void Rounds::abandoned(RoundWait& wait) {
  Round& round = wait.round;
  const bool counts = round.is_open() && wait.recovery == nullptr;
  if (counts && wait.parked.deadline() < round.abandoned.at) {
    round.abandoned = {wait.parked.deadline(), wait.parked.timeout, wait.member.rank};
    services_.timers().arm(round.timer, std::min(round.log_next, round.abandoned.at));
  }
  wait.parked.wait.reset();
}

void Rounds::fired(Round& round) {
  const AbandonedDeadline& abandoned = round.abandoned;
  if (round.is_open() && services_.now() >= abandoned.at) {
    const Member& member = roster_.members[abandoned.rank];
    return fail(round, answers_.late_error(round, awaited(round), member, abandoned.timeout));
  }
  round.log_next = services_.now() + services_.options().slow_round_log;
  if (!round.is_open() && round.waits.empty()) return;  // it was waited for no longer
  log_wait(services_, roster_, round, awaited(round));
  const Instant deadline = round.is_open() ? abandoned.at : base::far_future;
  services_.timers().arm(round.timer, std::min(round.log_next, deadline));
}

void Rounds::expired(Object& object) {
  find(std::get<RoundPlace>(object.place).round)->values.expire(object);
}

}  // namespace muster::core
