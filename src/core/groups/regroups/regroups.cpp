#include "core/groups/regroups/regroups.h"

#include <algorithm>
#include <utility>

#include "core/groups/groups_state.h"
#include "core/session/failure.h"

// Life of a regroup: a member calls it (open) -> all live members have, and if a size was asked
// for, candidates fill its ranks: the next epoch forms; or the earliest deadline passes: it forms
// from those who called, if they are enough, and else has failed for all, once -> a member that
// calls it late gets the recorded failure and is in step with the next attempt. It fails before if
// all were there for its size, called or not, and one of them goes whom nobody replaces.
//
// Attempts are counted per member, as rounds are. A member that joins, since it never had the
// answer to its first join, knows of no attempt: it takes part in the next one, whatever its size.
//
// A collective that waits for a member that waits in a regroup would wait in vain: both are told at
// once.

namespace muster::core {

RegroupWait::RegroupWait(Group& its_group, Member& its_member, Parked& its_parked)
    : Wait(its_parked), group(its_group), member(its_member) {
  if (parked.operation == wire::operation<wire::Join>) member.add_claim();
}

RegroupWait::~RegroupWait() {
  if (parked.operation == wire::operation<wire::Join>) member.drop_claim();
}

Regroups::Regroups(Group& group, Epoch& epoch, const Candidates& candidates)
    : group_(group), services_(epoch.services), epoch_(epoch), seating_(epoch.roster, candidates) {}

void Regroups::regroup(const RequestContext& context, Member& member,
                       const wire::Regroup& request) {
  const std::uint64_t next = member.next_attempt - member.join_attempts;
  if (request.attempt == 0 || request.attempt > next) {
    Error gap = epoch_.roster.error(ErrorCode::sequence_gap, "regroups are called in their order");
    gap.expected = next;
    gap.actual = request.attempt;
    return services_.fail(context, std::move(gap));
  }
  // A join of its own has called the open attempt: from here on it is the regroup's.
  if (request.attempt == next && called(member)) --member.join_attempts;
  const std::uint64_t attempt = request.attempt + member.join_attempts;
  if (attempt < member.next_attempt) return repeat(context, member, attempt);
  call(context, member, {request.new_size, request.min_size, false});
}

void Regroups::call(const RequestContext& context, Member& member, const RegroupSizes& sizes) {
  if (auto why = refusal(context, member, sizes)) return services_.fail(context, *std::move(why));
  if (called(member)) {
    if (wait(context, member)) take_over(sizes);
    return;
  }
  if (member.next_attempt < attempt_.number) return call_late(context, member);

  const Round* round = epoch_.rounds.undecided();
  const bool in_vain = round != nullptr && round->number >= member.next_round;
  if (in_vain || differs(sizes)) {
    Error conflict = conflict_error(member, text_of(sizes));
    conflict.round = in_vain ? round->number : 0;
    ++member.next_attempt;
    if (in_vain) epoch_.rounds.decide_failed(conflict);
    fail(conflict);
    return services_.answer(context, answer_of_failure(decided_.back().failure, {}));
  }
  if (!wait(context, member)) return;
  if (!attempt_.open) {
    attempt_.open = true;
    attempt_.opened = services_.now();
    attempt_.sizes = sizes;
    attempt_.least_next_round = member.next_round;
    reach_ = {};
  }
  take_over(sizes);
  attempt_.least_next_round = std::min(attempt_.least_next_round, member.next_round);
  ++attempt_.caller_count;
  ++member.next_attempt;
  group_.state().touch(group_);
}

/// Of the open attempt.
void Regroups::take_over(const RegroupSizes& sizes) {
  if (!attempt_.sizes.of_join || sizes.of_join) return;
  attempt_.sizes = sizes;
  reach_ = {};
  group_.state().touch(group_);
}

/// Whether the open attempt, if one is, cannot be this one.
bool Regroups::differs(const RegroupSizes& sizes) const {
  if (!attempt_.open || sizes.of_join != attempt_.sizes.of_join) return false;
  return sizes.new_size != attempt_.sizes.new_size || sizes.min_size != attempt_.sizes.min_size;
}

std::optional<Error> Regroups::refusal(const RequestContext& context, const Member& member,
                                       const RegroupSizes& sizes) const {
  const auto invalid = [&](std::string detail) {
    return epoch_.roster.error(ErrorCode::invalid_argument, std::move(detail));
  };
  const Options& options = services_.options();
  const std::uint32_t size_max = options.limits.world_size_max;
  if (context.timeout <= Duration::zero()) return invalid("a regroup's timeout is above zero");
  const bool is_given = attempt_.open && sizes.of_join;  // or it differs
  const std::uint32_t new_size = is_given ? attempt_.sizes.size() : sizes.size();
  if (new_size > size_max) {
    return invalid("the new size is above the server's limit of " + std::to_string(size_max));
  }
  if (new_size != 0 && sizes.min_size > new_size) return invalid("min_size is above the new size");
  if (called(member) && differs(sizes)) {
    return epoch_.roster.error(ErrorCode::busy, "this rank waits in a regroup of other sizes");
  }
  const Roster& roster = epoch_.roster;
  for (std::uint32_t rank = new_size; new_size != 0 && rank < roster.world_size(); ++rank) {
    if (!roster.members[rank].live()) continue;
    return invalid("rank " + std::to_string(rank) + " lives and keeps its rank, which is beyond " +
                   "the new size; regroup without a size renumbers");
  }
  if (decided_.size() > options.open_rounds_max && !called(member) &&
      member.next_attempt == attempt_.number) {
    epoch_.services.counted().tallies.refusals.count(Limit::open_rounds);
    Error full = epoch_.roster.error(
        ErrorCode::resource_exhausted,
        "open_rounds_max: members have yet to take part in older regroups; wait for them");
    full.limit = options.open_rounds_max;
    full.actual = decided_.size();
    return full;
  }
  return std::nullopt;
}

bool Regroups::wait(const RequestContext& context, Member& member) {
  Parked* parked = services_.park(context);
  if (parked == nullptr) return false;
  auto wait = std::make_unique<RegroupWait>(group_, member, *parked);
  attempt_.waits.append(wait->link);
  parked->wait = std::move(wait);
  return true;
}

void Regroups::join(const RequestContext& context, Member& member, std::uint32_t world_size) {
  skip_decided(member);
  const std::uint64_t before = member.next_attempt;
  call(context, member, {world_size, 0, true});
  member.join_attempts += member.next_attempt - before;
}

/// A call that was made before: its answer did not come.
void Regroups::repeat(const RequestContext& context, Member& member, std::uint64_t number) {
  if (number == attempt_.number && attempt_.open) {
    wait(context, member);
    return;
  }
  if (number < attempt_.number && number >= first_decided()) {
    const Failure& failure = decided_[number - first_decided()].failure;
    return services_.answer(context, answer_of_failure(failure, {}));
  }
  Error gap =
      epoch_.roster.error(ErrorCode::sequence_gap, "the regroup's outcome is not known any more");
  gap.expected = member.next_attempt;
  gap.actual = number;
  services_.fail(context, std::move(gap));
}

void Regroups::call_late(const RequestContext& context, Member& member) {
  Decided& decided = decided_[member.next_attempt - first_decided()];
  services_.answer(context, answer_of_failure(decided.failure, {}));
  ++member.next_attempt;
  --decided.to_come;
  trim_decided();
}

/// Those were decided without this member, which joins: none of them was its own.
void Regroups::skip_decided(Member& member) {
  for (; member.next_attempt < attempt_.number; ++member.next_attempt, ++member.join_attempts) {
    --decided_[member.next_attempt - first_decided()].to_come;
  }
  trim_decided();
}

void Regroups::cancel(const Member& member, std::uint64_t attempt) {
  if (!attempt_.open || attempt + member.join_attempts != attempt_.number) return;
  Error cancelled = epoch_.roster.error(ErrorCode::cancelled, "");
  epoch_.roster.blame(cancelled, member);
  fail(cancelled);
}

/// One stays until all have called the next: until then a caller that has not got its answer asks.
void Regroups::trim_decided() {
  while (decided_.size() > 1 && decided_[1].to_come == 0) decided_.pop_front();
}

void Regroups::fail(const Error& error) {
  Decided decided{make_failure(epoch_.account.quota, error), 0};
  for (const Member& member : epoch_.roster.members) {
    if (member.live() && !called(member)) ++decided.to_come;
  }
  const Failure failure = decided.failure;
  decided_.push_back(std::move(decided));
  ++attempt_.number;
  trim_decided();
  Chain<RegroupWait> waits;
  waits.append_all(attempt_.waits);
  close();
  while (!waits.empty()) {
    Parked& parked = waits.first().parked;
    const Duration elapsed = services_.now() - parked.received;
    services_.answer(parked, answer_of_failure(failure, elapsed));
  }
}

void Regroups::close() {
  attempt_.open = false;
  attempt_.caller_count = 0;
  attempt_.abandoned.clear();
  epoch_.abandoned.disarm();
}

/// A member is no longer live: what was to come from it does not.
void Regroups::departed(const Member& member) {
  group_.state().touch(group_);
  if (attempt_.open) reach_.gone(member.rank, report_of(services_, member));
  for (std::uint64_t number = std::max(member.next_attempt, first_decided());
       number < attempt_.number; ++number) {
    --decided_[number - first_decided()].to_come;
  }
  trim_decided();
  if (!called(member)) return;
  if (--attempt_.caller_count == 0) close();
  const auto is_its = [&](const AbandonedDeadline& each) { return each.rank == member.rank; };
  if (std::erase_if(attempt_.abandoned, is_its) != 0) arm_abandoned();
  for (auto each = attempt_.waits.begin(); each != attempt_.waits.end();) {
    RegroupWait& wait = *each++;
    if (&wait.member != &member) continue;
    const Roster& roster = epoch_.roster;
    services_.fail(wait.parked, roster.broken() ? roster.loss_error() : roster.leave_error());
  }
}

void Regroups::candidate_gone(const Joiner& joiner) {
  if (!attempt_.open) return;
  RankReport report = report_of(services_, joiner.rank, joiner.session);
  report.cause = joiner.session.ended.value_or(LossCause::none);
  reach_.gone(joiner.rank, std::move(report));
}

void Regroups::see_reach() {
  if (!attempt_.open) return;
  if (auto error = reach_.look(epoch_.roster, seating_, attempt_.sizes)) fail(*error);
}

void Regroups::collective(const RequestContext& context, Member& member,
                          const wire::CollectiveCall& request) {
  Rounds& rounds = epoch_.rounds;
  const bool in_vain = attempt_.open && epoch_.roster.whole() &&
                       request.round >= attempt_.least_next_round &&
                       !rounds.is_decided(request.round);
  if (!in_vain) {
    rounds.call(context, member, request, nullptr);
    return;
  }
  Error conflict =
      conflict_error(member, text_of(RoundCall{request.collective, request.root, request.codec}));
  conflict.round = request.round;
  if (rounds.call(context, member, request, &conflict)) fail(conflict);
}

std::optional<std::vector<Seat>> Regroups::seats_if_due() const {
  if (!attempt_.open || attempt_.caller_count < epoch_.roster.live_count) return std::nullopt;
  const std::uint32_t size = attempt_.sizes.size();
  if (size > seating_.count_max()) return std::nullopt;
  std::vector<Seat> seats = seating_.seats(attempt_.sizes, attempt_.number);
  if (size != 0 && seats.size() != size) return std::nullopt;
  return seats;
}

std::optional<std::vector<Seat>> Regroups::seats_at_deadline(const Member& decider,
                                                             Duration timeout) {
  if (attempt_.sizes.min_size != 0) {
    std::vector<Seat> seats = seating_.seats(attempt_.sizes, attempt_.number);
    if (seats.size() >= attempt_.sizes.min_size) return seats;
  }
  Error late = epoch_.roster.error(ErrorCode::timed_out, "");
  late.decided_by_rank = static_cast<int>(decider.rank);
  late.decided_by_timeout = timeout;
  blame_missing(late);
  fail(late);
  return std::nullopt;
}

void RegroupWait::timed_out() {
  GroupsState& state = group.state();
  group.regroup_deadline(member, parked.timeout);
  state.work();
}

void RegroupWait::abandoned() { group.regroups().abandoned(*this); }

std::string RegroupWait::target() const { return text_of(member.roster); }

void Regroups::abandoned(RegroupWait& wait) {
  attempt_.abandoned.push_back({wait.parked.deadline(), wait.parked.timeout, wait.member.rank});
  Timer& timer = epoch_.abandoned;
  if (!timer.armed() || wait.parked.deadline() < timer.at()) {
    services_.timers().arm(timer, wait.parked.deadline());
  }
  wait.parked.wait.reset();
}

const AbandonedDeadline& Regroups::abandoned() const {
  return *std::ranges::min_element(attempt_.abandoned, {}, &AbandonedDeadline::at);
}

void Regroups::arm_abandoned() {
  if (attempt_.abandoned.empty()) return epoch_.abandoned.disarm();
  services_.timers().arm(epoch_.abandoned, abandoned().at);
}

/// `caller` calls something that the others wait for in vain, or not as they do.
Error Regroups::conflict_error(const Member& caller, const std::string& called_instead) const {
  const Roster& roster = epoch_.roster;
  const Round* round = epoch_.rounds.undecided();
  Error conflict = epoch_.roster.error(ErrorCode::collective_mismatch, "");
  for (const Member& member : roster.members) {
    if (!member.live()) continue;
    RankReport report = report_of(services_, member);
    if (&member == &caller) {
      report.called = called_instead;
      add_rank_in_full(conflict, std::move(report));
      continue;
    }
    if (called(member)) {
      report.called = text_of(attempt_.sizes);
    } else if (round != nullptr && member.next_round > round->number) {
      report.called = text_of(round->call);
    } else {
      continue;
    }
    add_rank(conflict, member.rank, [&] { return std::move(report); });
  }
  return conflict;
}

void Regroups::blame_missing(Error& timeout) const {
  for (const Member& member : epoch_.roster.members) {
    if (member.live() && !called(member)) epoch_.roster.blame(timeout, member);
  }
  const bool is_complete = timeout.rank_ranges.empty();
  if (!is_complete) return;
  timeout.detail = "all live members came, but no candidates for these ranks";
  for (const std::uint32_t rank : seating_.empty_ranks(attempt_.sizes)) {
    add_rank(timeout, rank, [&] { return report_of_absent(rank); });
  }
}

std::optional<wire::RegroupEntry> Regroups::entry() const {
  if (!attempt_.open) return std::nullopt;
  wire::RegroupEntry entry{
      attempt_.sizes.new_size, attempt_.sizes.min_size, services_.now() - attempt_.opened, {}, {}};
  std::vector<std::uint32_t> missing = seating_.empty_ranks(attempt_.sizes);
  for (const Member& member : epoch_.roster.members) {
    if (!member.live()) continue;
    if (called(member)) {
      add_to(entry.called, member.rank);
    } else {
      missing.push_back(member.rank);
    }
  }
  std::sort(missing.begin(), missing.end());
  for (const std::uint32_t rank : missing) add_to(entry.missing, rank);
  return entry;
}

}  // namespace muster::core
