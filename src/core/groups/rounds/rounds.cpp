#include "core/groups/rounds/rounds.h"

#include <algorithm>
#include <utility>

#include "core/session/failure.h"
#include "core/session/reply.h"

// Life of a round: the first rank calls it (open) -> it is decided, once: done when all have come
// (barrier, all_gather, gather) or the source has (broadcast, scatter); failed at the earliest
// deadline, when calls differ, when one cancels, interrupts or leaves -> ranks that come late get
// the recorded outcome -> every live member has acknowledged its outcome: freed. When the epoch
// breaks, an open round goes at once: every later call gets the same failure from the epoch.
//
// A member calls round n when round n - 1 is decided, so only the last round can be open. One
// that acknowledges round n has all before it, so its acknowledgements are one number, and rounds
// are freed in their order. Beyond `open_rounds_max` rounds the last one is not decided `done`
// before a slot is free.

namespace muster::core {
namespace {

constexpr std::uint64_t round_record_bytes = sizeof(Round) + 64;

}  // namespace

Round* Rounds::find(std::uint64_t number) const {
  if (open_.empty() || number < open_.front()->number) return nullptr;
  const std::uint64_t index = number - open_.front()->number;
  return index < open_.size() ? open_[index].get() : nullptr;
}

const Round* Rounds::undecided() const {
  return !open_.empty() && open_.back()->is_open() ? open_.back().get() : nullptr;
}

/// It is the last that the hosting rank has called: nobody else is withheld an outcome.
const Round* Rounds::confirming() const {
  const Round* last = find(roster_.members[roster_.hosting_rank].next_round - 1);
  const bool waits = last != nullptr && last->state == Round::State::done && !last->waits.empty();
  return waits ? last : nullptr;
}

bool Rounds::is_decided(std::uint64_t number) const {
  const Round* round = find(number);
  return round != nullptr && !round->is_open();
}

bool Rounds::call(const RequestContext& context, Member& member,
                  const wire::CollectiveCall& request, const Error* conflict) {
  if (roster_.broken() && !is_decided(request.round)) {
    services_.answer(context, answer_of_failure(roster_.loss(quota_), {}, request.round));
    return false;
  }
  if (auto error = refusal(context, member, request, services_.options().limits)) {
    services_.fail(context, *std::move(error));
    return false;
  }
  if (request.round < member.next_round) {
    repeat(context, member, request.round);
    return false;
  }
  // It has the outcomes of all rounds before, and needs those no longer that it has passed.
  acknowledged(member, request.round - 1);
  Round* round = find(request.round);
  if (round != nullptr && !round->is_open()) {
    call_late(context, member, *round, request);
    return false;
  }
  const bool first = round == nullptr;
  if (first) {
    if (undecided() != nullptr) {
      services_.fail(context, roster_.error(ErrorCode::busy,
                                            "this rank's last collective is not decided yet"));
      return false;
    }
    auto made = make_round(context, request.round, call_of(request));
    if (made == nullptr) return false;
    open_.push_back(std::move(made));
    round = open_.back().get();
  }
  const bool took_part = arrive(context, member, *round, request, conflict);
  if (first && !took_part) open_.pop_back();
  return took_part;
}

/// A call that was made before: its answer did not come.
void Rounds::repeat(const RequestContext& context, Member& member, std::uint64_t number) {
  Round* round = find(number);
  if (round == nullptr) {
    Error error = roster_.error(ErrorCode::sequence_gap, "the round's outcome was acknowledged");
    error.expected = member.next_round;
    error.actual = number;
    return services_.fail(context, std::move(error));
  }
  if (round->is_open() || answers_.is_withheld(*round, member)) {
    wait(context, member, *round);
  } else {
    services_.answer(context, answers_.outcome(*round, member, {}));
  }
}

/// The round is decided; only a call that does not fit one that is done gets something else.
void Rounds::call_late(const RequestContext& context, Member& member, Round& round,
                       const wire::CollectiveCall& request) {
  const RoundCall call = call_of(request);
  if (round.state == Round::State::done && call != round.call) {
    Failure mismatch = make_failure(quota_, answers_.mismatch_error(round, member, text_of(call)));
    round.differing.push_back({member.rank, std::move(mismatch)});
  }
  Answer answer = answers_.outcome(round, member, {});
  ++member.next_round;
  services_.answer(context, std::move(answer));
}

std::unique_ptr<Round> Rounds::make_round(const RequestContext& context, std::uint64_t number,
                                          RoundCall call) {
  const std::uint32_t open_max = services_.options().open_rounds_max;
  // Failed rounds beyond the limit are kept too, for those who come late; not for ever.
  if (open_.size() >= 2 * std::uint64_t{open_max}) {
    services_.counted().tallies.refusals.count(Limit::open_rounds);
    Error error = roster_.error(
        ErrorCode::resource_exhausted,
        "open_rounds_max: ranks have yet to take part in older rounds; wait for them");
    error.limit = open_max;
    error.actual = open_.size();
    answers_.blame_for(open_.front()->number, error);
    services_.fail(context, std::move(error));
    return nullptr;
  }
  auto round =
      std::make_unique<Round>(*this, shelf_, number, call, services_.counted().held.rounds);
  if (!round->record.add(quota_, round_record_bytes)) {
    services_.fail(context, memory_exhausted(quota_, round_record_bytes));
    return nullptr;
  }
  round->unacknowledged_count = roster_.live_count;
  round->opened = context.now;
  services_.counted().open_rounds.enter(round->place, context.now);
  round->log_next = context.now + services_.options().slow_round_log;
  services_.timers().arm(round->timer, round->log_next);
  return round;
}

/// Takes the call into an open round. False when it was refused and does not count.
bool Rounds::arrive(const RequestContext& context, Member& member, Round& round,
                    const wire::CollectiveCall& request, const Error* conflict) {
  const auto fail_all = [&](Error error) {
    ++member.next_round;
    fail(round, std::move(error));
    services_.answer(context, answers_.outcome(round, member, {}));
    return true;
  };
  const RoundCall call = call_of(request);
  if (conflict != nullptr) return fail_all(*conflict);
  if (round.call != call) return fail_all(answers_.mismatch_error(round, member, text_of(call)));
  if (!roster_.left.empty()) return fail_all(roster_.leave_error());
  const std::uint64_t bytes = round.values.bytes() + bytes_of(request.values);
  const std::uint64_t bytes_max = services_.options().limits.round_bytes_max;
  if (bytes > bytes_max) {
    Error error = answers_.error(ErrorCode::too_large, round);
    error.actual = bytes;
    error.limit = bytes_max;
    return fail_all(std::move(error));
  }

  const bool complete = completes(round, member);
  const bool hosts = call.collective == wire::Collective::barrier &&
                     member.rank == roster_.hosting_rank && roster_.live_count > 1;
  const bool brings = !request.values.empty();
  if (brings && !round.values.store(member, request)) {
    services_.fail(context, memory_exhausted(quota_, bytes_of(request.values)));
    return false;
  }
  if ((!complete || hosts) && wait(context, member, round) == nullptr) {
    if (brings) round.values.withdraw(call, member.rank);
    return false;
  }
  round.source_called |= call.from_one() && member.rank == call.root;
  ++round.arrived_count;
  ++member.next_round;
  if (complete) finish(round);
  if (complete && !hosts) services_.answer(context, answers_.outcome(round, member, {}));
  return true;
}

/// Null: the request was refused.
RoundWait* Rounds::wait(const RequestContext& context, Member& member, Round& round) {
  Parked* parked = services_.park(context);
  if (parked == nullptr) return nullptr;
  auto owned = std::make_unique<RoundWait>(round, member, *parked);
  RoundWait& wait = *owned;
  round.waits.append(wait.link);
  parked->wait = std::move(owned);
  if (!round.timer.armed()) services_.timers().arm(round.timer, round.log_next);
  return &wait;
}

bool Rounds::is_admitted(const Round& round) const {
  return round.number - open_.front()->number < services_.options().open_rounds_max;
}

/// Whether the round can be done once `member` has come to it as well.
bool Rounds::completes(const Round& round, const Member& member) const {
  if (!is_admitted(round)) return false;
  if (round.call.from_one()) return round.source_called || member.rank == round.call.root;
  return round.arrived_count + 1 >= roster_.world_size();
}

void Rounds::cancel(const RequestContext& context, const Member& member, std::uint64_t number) {
  const Round* open = undecided();
  if (open != nullptr && open->number == number) {
    Error error = answers_.error(ErrorCode::cancelled, *open);
    roster_.blame(error, member);
    decide_failed(std::move(error));
  }
  services_.answer(context, answer_of(wire::EmptyReply{}));
}

std::uint64_t Rounds::interrupt(const RequestContext& context, Member& member, const Error& why) {
  const std::uint64_t before = member.next_round;
  // One by others that this rank has yet to be told of stands for both.
  if (interrupted_ < before) {
    if (undecided() == nullptr) {
      const std::uint64_t number = open_.empty() ? before : open_.back()->number + 1;
      auto made = make_round(context, number, RoundCall{wire::Collective{}});
      if (made == nullptr) return 0;
      open_.push_back(std::move(made));
    }
    interrupted_ = open_.back()->number;
    decide_failed(why);
  }
  // Those that it passes stay until it acknowledges a later one: its call may be on its way.
  for (std::uint64_t number = before; number <= interrupted_; ++number) {
    if (Round* const round = find(number)) round->passed_by.push_back(member.rank);
  }
  member.next_round = std::max(before, interrupted_ + 1);
  return interrupted_;
}

void Rounds::recover(const RequestContext& context, Member& member, std::uint64_t number,
                     std::vector<std::uint64_t> next_sequences) {
  Round* round = find(number);
  const bool called = number != 0 && number < member.next_round;
  if (called && round != nullptr && !round->is_open()) {
    return services_.answer(context, answers_.recovered(*round, member, next_sequences));
  }
  if (called && round != nullptr) {
    HeldBytes record;
    const std::uint64_t bytes = next_sequences.size() * sizeof(std::uint64_t);
    if (!record.add(quota_, bytes)) {
      return services_.fail(context, memory_exhausted(quota_, bytes));
    }
    RoundWait* const waiting = wait(context, member, *round);
    if (waiting == nullptr) return;
    waiting->recovery =
        std::make_unique<Recovery>(Recovery{std::move(next_sequences), std::move(record)});
    return;
  }
  wire::RecoverReply reply;
  reply.next_sequences = std::move(next_sequences);
  if (!called) {
    reply.state = number == 0 ? wire::RoundState::none : wire::RoundState::not_called;
  } else if (roster_.broken()) {
    reply.state = wire::RoundState::failed;
    reply.error = roster_.loss_error();
    reply.error->round = number;
  } else {
    Error error = roster_.error(ErrorCode::sequence_gap, "the round's outcome was acknowledged");
    error.expected = member.next_round;
    error.actual = number;
    return services_.fail(context, std::move(error));
  }
  services_.answer(context, answer_of(reply));
}

}  // namespace muster::core
