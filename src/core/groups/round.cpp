#include "core/groups/round.h"

#include <algorithm>

#include "core/session/failure.h"
#include "core/session/reply.h"

// Life of a round: the first rank calls it (open) -> it is decided, once: done when all have come
// (barrier, all_gather, gather) or the source has (broadcast, scatter); failed at the earliest
// deadline, when calls differ, when one cancels or leaves -> ranks that come late get the
// recorded outcome -> every live member has acknowledged its outcome: freed. When the epoch
// breaks, an open round goes at once: every later call gets the same failure from the epoch.
//
// A member calls round n when round n - 1 is decided, so only the last round can be open. One
// that acknowledges round n has all before it, so its acknowledgements are one number, and rounds
// are freed in their order. Beyond `open_rounds_max` rounds the last one is not decided `done`
// before a slot is free.

namespace muster::core {
namespace {

constexpr std::uint64_t round_record_bytes = sizeof(Round) + 64;

RoundCall call_of(const wire::CollectiveCall& request) {
  return {request.collective, request.root, request.codec};
}

bool brings_value(const RoundCall& call, std::uint32_t rank) {
  if (call.collective == wire::Collective::barrier) return false;
  return !from_one(call.collective) || rank == call.root;
}

std::uint64_t bytes_of(const std::vector<std::string_view>& values) {
  std::uint64_t bytes = 0;
  for (const std::string_view value : values) bytes += value.size();
  return bytes;
}

}  // namespace

bool from_one(wire::Collective collective) {
  return collective == wire::Collective::broadcast || collective == wire::Collective::scatter;
}

Rounds::~Rounds() {
  for (const auto& round : open_) drop_objects(*round);
}

Round* Rounds::find(std::uint64_t number) const {
  if (open_.empty() || number < open_.front()->number) return nullptr;
  const std::uint64_t index = number - open_.front()->number;
  return index < open_.size() ? open_[index].get() : nullptr;
}

const Round* Rounds::undecided() const {
  const bool open = !open_.empty() && open_.back()->state == Round::State::open;
  return open ? open_.back().get() : nullptr;
}

/// It is the last that the hosting rank has called: nobody else is withheld an outcome.
const Round* Rounds::confirming() const {
  const Round* last = find(roster_.members[roster_.hosting_rank].next_round - 1);
  const bool waits = last != nullptr && last->state == Round::State::done && !last->waits.empty();
  return waits ? last : nullptr;
}

bool Rounds::is_decided(std::uint64_t number) const {
  const Round* round = find(number);
  return round != nullptr && round->state != Round::State::open;
}

bool Rounds::call(const RequestContext& context, Member& member,
                  const wire::CollectiveCall& request, const Error* conflict) {
  if (roster_.broken() && !is_decided(request.round)) {
    host_.answer(context, answer_of_failure(roster_.loss(quota_), {}, request.round));
    return false;
  }
  if (auto error = refusal(context, member, request)) {
    host_.fail(context, *std::move(error));
    return false;
  }
  if (request.round < member.next_round) {
    repeat(context, member, request.round);
    return false;
  }
  Round* round = find(request.round);
  if (round != nullptr && round->state != Round::State::open) {
    call_late(context, member, *round, request);
    return false;
  }
  const bool first = round == nullptr;
  if (first) {
    auto made = make_round(context, request.round, call_of(request));
    if (made == nullptr) return false;
    open_.push_back(std::move(made));
    round = open_.back().get();
  }
  const bool took_part = arrive(context, member, *round, request, conflict);
  if (first && !took_part) open_.pop_back();
  return took_part;
}

/// What is wrong with the call itself: it does not count then.
std::optional<Error> Rounds::refusal(const RequestContext& context, const Member& member,
                                     const wire::CollectiveCall& request) const {
  const auto invalid = [&](std::string detail) {
    return roster_.error(ErrorCode::invalid_argument, std::move(detail));
  };
  const wire::ServerLimits& limits = host_.options().limits;
  if (request.round > member.next_round) {
    Error error = roster_.error(ErrorCode::sequence_gap, "collectives are called in their order");
    error.expected = member.next_round;
    error.actual = request.round;
    return error;
  }
  if (request.round == 0) return invalid("rounds are counted from 1");
  if (context.timeout <= Duration::zero()) return invalid("a collective's timeout is above zero");
  if (request.root >= roster_.world_size()) return invalid("the root is no rank of the group");
  const bool scatters = request.collective == wire::Collective::scatter;
  const std::size_t wanted = scatters ? roster_.world_size() : 1;
  if (!request.values.empty() && request.values.size() != wanted) {
    return invalid(std::to_string(request.values.size()) + " values were given, not " +
                   std::to_string(wanted));
  }
  const bool brings = brings_value(call_of(request), member.rank);
  if (request.values.empty() == brings) {
    return invalid(brings ? "this rank's value is missing" : "this rank has no value to give");
  }
  for (const std::string_view value : request.values) {
    if (value.size() > limits.value_bytes_max) {
      return too_large("the value", value.size(), "bytes", limits.value_bytes_max);
    }
  }
  const Round* waiting = undecided();
  if (waiting != nullptr && waiting->number < request.round && request.round == member.next_round) {
    return roster_.error(ErrorCode::busy, "this rank's last collective is not decided yet");
  }
  return std::nullopt;
}

/// A call that was made before: its answer did not come.
void Rounds::repeat(const RequestContext& context, Member& member, std::uint64_t number) {
  Round* round = find(number);
  if (round == nullptr) {
    Error error = roster_.error(ErrorCode::sequence_gap, "the round's outcome was acknowledged");
    error.expected = member.next_round;
    error.actual = number;
    return host_.fail(context, std::move(error));
  }
  if (round->state == Round::State::open || withheld(*round, member)) {
    wait(context, member, *round);
  } else {
    host_.answer(context, outcome(*round, member, {}));
  }
}

/// The round is decided; only a call that does not fit one that is done gets something else.
void Rounds::call_late(const RequestContext& context, Member& member, Round& round,
                       const wire::CollectiveCall& request) {
  const RoundCall call = call_of(request);
  if (round.state == Round::State::done && call != round.call) {
    Failure mismatch = make_failure(quota_, mismatch_error(round, member, text_of(call)));
    round.differing.push_back({member.rank, std::move(mismatch)});
  }
  Answer answer = outcome(round, member, {});
  ++member.next_round;
  host_.answer(context, std::move(answer));
}

std::unique_ptr<Round> Rounds::make_round(const RequestContext& context, std::uint64_t number,
                                          RoundCall call) {
  const std::uint32_t open_max = host_.options().open_rounds_max;
  // Failed rounds beyond the limit are kept too, for those who come late; not for ever.
  if (open_.size() >= 2 * std::uint64_t{open_max}) {
    Error error = roster_.error(ErrorCode::resource_exhausted,
                                "open_rounds_max: ranks have yet to take part in older rounds");
    error.limit = open_max;
    error.actual = open_.size();
    blame_for_oldest(error);
    host_.fail(context, std::move(error));
    return nullptr;
  }
  auto round = std::make_unique<Round>(*this, number, call);
  if (!round->record.add(quota_, round_record_bytes)) {
    host_.fail(context, memory_exhausted(host_, quota_, round_record_bytes));
    return nullptr;
  }
  round->unacknowledged_count = roster_.live_count;
  round->opened = context.now;
  round->log_next = context.now + host_.options().slow_round_log;
  host_.timers().arm(round->timer, round->log_next);
  return round;
}

/// Takes the call into an open round. False when it was refused and does not count.
bool Rounds::arrive(const RequestContext& context, Member& member, Round& round,
                    const wire::CollectiveCall& request, const Error* conflict) {
  const auto fail = [&](Error error) {
    ++member.next_round;
    fail_open(round, std::move(error));
    host_.answer(context, outcome(round, member, {}));
    return true;
  };
  const RoundCall call = call_of(request);
  if (conflict != nullptr) return fail(*conflict);
  if (round.call != call) return fail(mismatch_error(round, member, text_of(call)));
  if (!roster_.left.empty()) return fail(roster_.leave_error());
  const std::uint64_t bytes = round.value_bytes + bytes_of(request.values);
  const std::uint64_t bytes_max = host_.options().limits.round_bytes_max;
  if (bytes > bytes_max) {
    Error error = round_error(ErrorCode::too_large, round);
    error.actual = bytes;
    error.limit = bytes_max;
    return fail(std::move(error));
  }

  const bool complete = completes(round, member);
  const bool hosts = call.collective == wire::Collective::barrier &&
                     member.rank == roster_.hosting_rank && roster_.live_count > 1;
  if (!request.values.empty() && !store_values(context, round, member, request)) return false;
  if ((!complete || hosts) && !wait(context, member, round)) {
    if (!request.values.empty()) withdraw_values(round, member);
    return false;
  }
  round.value_bytes = bytes;
  round.source_called |= from_one(call.collective) && member.rank == call.root;
  ++round.arrived_count;
  ++member.next_round;
  if (complete) finish(round);
  if (complete && !hosts) host_.answer(context, outcome(round, member, {}));
  return true;
}

bool Rounds::store_values(const RequestContext& context, Round& round, const Member& member,
                          const wire::CollectiveCall& request) {
  const RoundPlace place{round.number, member.rank};
  bool stored = true;
  if (request.collective == wire::Collective::broadcast) {
    round.body = shelf_.store(place, request.codec, request.values.front());
    stored = round.body != nullptr;
  } else if (request.collective == wire::Collective::scatter) {
    round.values.assign(roster_.world_size(), nullptr);
    for (std::uint32_t rank = 0; stored && rank < roster_.world_size(); ++rank) {
      if (rank == member.rank) continue;
      round.values[rank] =
          shelf_.store(RoundPlace{round.number, rank}, request.codec, request.values[rank]);
      stored = round.values[rank] != nullptr;
    }
  } else {
    round.values.resize(roster_.world_size());
    round.values[member.rank] = shelf_.store(place, request.codec, request.values.front());
    stored = round.values[member.rank] != nullptr;
  }
  if (stored) return true;
  withdraw_values(round, member);
  host_.fail(context, memory_exhausted(host_, quota_, bytes_of(request.values)));
  return false;
}

void Rounds::withdraw_values(Round& round, const Member& member) {
  if (from_one(round.call.collective)) {
    drop_objects(round);
  } else {
    drop_value(round, member.rank);
  }
}

bool Rounds::wait(const RequestContext& context, Member& member, Round& round) {
  Parked* parked = host_.park(context);
  if (parked == nullptr) return false;
  auto wait = std::make_unique<RoundWait>(round, member, *parked);
  round.waits.append(wait->link);
  parked->wait = std::move(wait);
  if (!round.timer.armed()) host_.timers().arm(round.timer, round.log_next);
  return true;
}

bool Rounds::admitted(const Round& round) const {
  return round.number - open_.front()->number < host_.options().open_rounds_max;
}

/// Whether the round can be done once `member` has come to it as well.
bool Rounds::completes(const Round& round, const Member& member) const {
  if (!admitted(round)) return false;
  if (from_one(round.call.collective)) return round.source_called || member.rank == round.call.root;
  return round.arrived_count + 1 >= roster_.world_size();
}

}  // namespace muster::core
