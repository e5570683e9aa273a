#include <algorithm>
#include <new>

#include "core/groups/round.h"
#include "core/session/failure.h"
#include "core/session/reply.h"

// How rounds are decided, confirmed and freed.

namespace muster::core {

void Rounds::decide_failed(Error error) {
  if (undecided() != nullptr) fail_open(*open_.back(), std::move(error));
}

void Rounds::fail_open(Round& round, Error error) {
  error.round = round.number;
  round.failure = make_failure(quota_, error);
  round.state = Round::State::failed;
  last_failure_ = {round.failure, round.call, host_.now()};
  drop_objects(round);
  settle(round);
}

void Rounds::break_off(const Failure& failure) {
  if (undecided() == nullptr) return;
  const std::unique_ptr<Round> round = std::move(open_.back());
  open_.pop_back();
  round->failure = failure;
  round->state = Round::State::failed;
  settle(*round);
  drop_objects(*round);
}

void Rounds::close(const Failure& failure) {
  while (!open_.empty()) {
    const std::unique_ptr<Round> round = std::move(open_.front());
    open_.pop_front();
    const bool open = round->state == Round::State::open;
    while (!round->waits.empty()) {
      RoundWait& wait = round->waits.first();
      if (open) {
        round->state = Round::State::failed;
        round->failure = wait.member.standing == Standing::fenced ? roster_.fenced : failure;
      }
      answer(wait);
    }
    drop_objects(*round);
  }
}

/// All that was asked for is there: the outcome is what every rank of the round gets.
void Rounds::finish(Round& round) {
  const bool gathers = round.call.collective == wire::Collective::all_gather ||
                       round.call.collective == wire::Collective::gather;
  if (gathers) {
    std::string body;
    try {
      body = gathered_body(round);
    } catch (const std::bad_alloc&) {
      quota_.set_short(true);
      Error error = round_error(ErrorCode::resource_exhausted, round);
      error.detail = "the system gives the server no memory for the values of all ranks";
      error.actual = round.value_bytes;
      return fail_open(round, std::move(error));
    }
    drop_objects(round);  // first: a value is not held twice
    round.body = &shelf_.store_always(RoundPlace{round.number, round.call.root}, round.call.codec,
                                      std::move(body));
  }
  round.state = Round::State::done;
  if (round.body != nullptr) shelf_.let_age(*round.body);
  for (Object* value : round.values) {
    if (value != nullptr) shelf_.let_age(*value);
  }
  settle(round);
}

/// Answers all who wait, but the rank that leaves a barrier last.
void Rounds::settle(Round& round) {
  round.timer.disarm();
  Chain<RoundWait> waits;
  waits.append_all(round.waits);
  while (!waits.empty()) {
    RoundWait& wait = waits.first();
    if (wait.recovery == nullptr && withheld(round, wait.member)) {
      round.waits.append(wait.link);
    } else {
      answer(wait);
    }
  }
  if (!round.waits.empty()) host_.timers().arm(round.timer, round.log_next);
}

/// Lets the rank that leaves the barrier last go, once all others have confirmed.
void Rounds::confirm(Round& round) {
  if (round.state != Round::State::done || unconfirmed_count(round) != 0) return;
  round.timer.disarm();
  while (!round.waits.empty()) answer(round.waits.first());
}

bool Rounds::withheld(const Round& round, const Member& member) const {
  return round.state == Round::State::done && member.rank == roster_.hosting_rank &&
         unconfirmed_count(round) != 0;
}

std::uint32_t Rounds::unconfirmed_count(const Round& round) const {
  if (round.call.collective != wire::Collective::barrier) return 0;
  const Member& host = roster_.members[roster_.hosting_rank];
  const bool counts_host = host.live() && host.acknowledged_round < round.number;
  return round.unacknowledged_count - (counts_host ? 1 : 0);
}

void Rounds::acknowledged(Member& member, std::uint64_t number) {
  const Round* open = undecided();
  const std::uint64_t last = open != nullptr ? open->number : member.next_round;
  if (number >= last) number = last - 1;
  if (number >= member.next_round) number = member.next_round - 1;
  const std::uint64_t before = member.acknowledged_round;
  if (number <= before) return;
  member.acknowledged_round = number;
  const std::uint64_t first = open_.empty() ? number + 1 : open_.front()->number;
  for (std::uint64_t each = std::max(before + 1, first); each <= number; ++each) {
    Round* round = find(each);
    if (round == nullptr) continue;
    --round->unacknowledged_count;
    drop_value(*round, member.rank);
    confirm(*round);
  }
  free_acknowledged();
}

void Rounds::member_gone(const Member& member) {
  for (const auto& round : open_) {
    if (round->number <= member.acknowledged_round) continue;
    --round->unacknowledged_count;
    if (round->state != Round::State::open) drop_value(*round, member.rank);
    confirm(*round);
  }
  free_acknowledged();
}

void Rounds::free_acknowledged() {
  while (!open_.empty() && open_.front()->unacknowledged_count == 0 &&
         open_.front()->state != Round::State::open) {
    drop_objects(*open_.front());
    open_.pop_front();
  }
  if (undecided() == nullptr) return;
  Round& last = *open_.back();
  const bool complete = last.source_called || last.arrived_count == roster_.world_size();
  if (complete && admitted(last)) finish(last);
}

void Rounds::cancel(const RequestContext& context, const Member& member, std::uint64_t number) {
  const Round* open = undecided();
  if (open != nullptr && open->number == number) {
    Error error = round_error(ErrorCode::cancelled, *open);
    roster_.blame(error, member);
    decide_failed(std::move(error));
  }
  host_.answer(context, answer_of(wire::EmptyReply{}));
}

void RoundWait::timed_out() { round.rounds.timed_out(*this); }

void RoundWait::abandoned() { round.rounds.abandoned(*this); }

std::string RoundWait::target() const {
  return text_of(member.roster) + " round " + std::to_string(round.number) + " " +
         text_of(round.call);
}

void Rounds::timed_out(RoundWait& wait) {
  Round& round = wait.round;
  if (round.state != Round::State::open) return answer(wait);
  Error error = missing_error(round, wait.member, wait.parked.timeout);
  if (wait.recovery != nullptr) {
    return host_.fail(wait.parked, std::move(error));
  }
  fail_open(round, std::move(error));
}

void Rounds::expired(Object& object) {
  const RoundPlace place = std::get<RoundPlace>(object.place);
  if (Round* round = find(place.round)) {
    if (round->body == &object) round->body = nullptr;
    if (!round->values.empty() && round->values[place.rank] == &object) {
      round->values[place.rank] = nullptr;
    }
  }
  shelf_.remove(object);
}

void Rounds::drop_value(Round& round, std::uint32_t rank) {
  if (rank >= round.values.size() || round.values[rank] == nullptr) return;
  shelf_.remove(*round.values[rank]);
  round.values[rank] = nullptr;
}

void Rounds::drop_objects(Round& round) {
  for (std::uint32_t rank = 0; rank < round.values.size(); ++rank) drop_value(round, rank);
  round.values.clear();
  if (round.body != nullptr) shelf_.remove(*round.body);
  round.body = nullptr;
}

/// The call stays: its deadline decides as if its rank still waited.
void Rounds::abandoned(RoundWait& wait) {
  Round& round = wait.round;
  const bool counts = round.state == Round::State::open && wait.recovery == nullptr;
  if (counts && wait.parked.deadline < round.abandoned_deadline) {
    round.abandoned_deadline = wait.parked.deadline;
    round.abandoned_timeout = wait.parked.timeout;
    round.abandoned_by = wait.member.rank;
    host_.timers().arm(round.timer, std::min(round.log_next, round.abandoned_deadline));
  }
  wait.parked.wait.reset();
}

void Rounds::on_timer(Round& round) {
  const bool open = round.state == Round::State::open;
  if (open && host_.now() >= round.abandoned_deadline) {
    const Member& member = roster_.members[round.abandoned_by];
    return fail_open(round, missing_error(round, member, round.abandoned_timeout));
  }
  round.log_next = host_.now() + host_.options().slow_round_log;
  if (!open && round.waits.empty()) return;  // it was waited for no longer
  log_wait(round);
  const Instant deadline = open ? round.abandoned_deadline : base::far_future;
  host_.timers().arm(round.timer, std::min(round.log_next, deadline));
}

void Rounds::log_wait(const Round& round) const {
  const Awaited awaited = this->awaited(round);
  const std::string call = "group " + quoted(roster_.group) + " epoch " +
                           std::to_string(roster_.epoch) + " round " +
                           std::to_string(round.number) + ": " + text_of(round.call);
  const Duration waited = host_.now() - round.opened;
  const std::string age = in_seconds(std::chrono::floor<std::chrono::milliseconds>(waited));
  const std::string ranks = base::text_of(awaited.ranks);
  if (round.state == Round::State::done) {
    host_.log(LogLevel::warning,
              call + " is done, but waits for " + age + ", not confirmed by: " + ranks);
  } else if (awaited.older_rounds != 0) {
    host_.log(LogLevel::warning, call + " waits for " + age + " behind " +
                                     std::to_string(awaited.older_rounds) +
                                     " open rounds, the oldest missing: " + ranks);
  } else {
    host_.log(LogLevel::warning, call + " waits for " + age + ", missing: " + ranks);
  }
}

}  // namespace muster::core
