#include "core/group.h"

#include <algorithm>
#include <utility>

#include "core/failure.h"

// Life of a regroup: a member calls it (open) -> all live members have, and if a size was asked
// for, candidates fill its ranks: the next epoch forms; or the earliest deadline passes: it forms
// from those who called, if they are enough, and else has failed for all, once -> a member that
// calls it late gets the recorded failure and is in step with the next attempt.
//
// Attempts are counted per member, as rounds are. A collective that waits for a member that waits
// in a regroup would wait in vain: both are told at once.

namespace muster::core {
namespace {

std::string text_of_regroup(std::uint32_t new_size, std::uint32_t min_size) {
  std::string text = "regroup";
  if (new_size != 0) text += " size=" + std::to_string(new_size);
  if (min_size != 0) text += " min_size=" + std::to_string(min_size);
  return text;
}

}  // namespace

void Group::regroup(const RequestContext& context, Member& member, const wire::Regroup& request) {
  const std::uint64_t next = member.next_attempt - member.join_attempts;
  if (request.attempt == 0 || request.attempt > next) {
    Error gap = error(ErrorCode::sequence_gap, "regroups are called in their order");
    gap.expected = next;
    gap.actual = request.attempt;
    return room_.host.fail(context, std::move(gap));
  }
  // A join of its own has called the open attempt: from here on it is the regroup's.
  if (request.attempt == next && called(member)) --member.join_attempts;
  const std::uint64_t attempt = request.attempt + member.join_attempts;
  if (attempt < member.next_attempt) return repeat_regroup(context, member, attempt);
  call_regroup(context, member, request.new_size, request.min_size);
}

void Group::call_regroup(const RequestContext& context, Member& member, std::uint32_t new_size,
                         std::uint32_t min_size) {
  if (auto why = regroup_refusal(context, member, new_size, min_size)) {
    return room_.host.fail(context, *std::move(why));
  }
  if (called(member)) {
    wait(context, member);
    return;
  }
  if (member.next_attempt < attempt_.number) return call_late(context, member);

  const Round* round = epoch_->rounds.undecided();
  const bool in_vain = round != nullptr && round->number >= member.next_round;
  const bool differs =
      attempt_.open && (new_size != attempt_.new_size || min_size != attempt_.min_size);
  if (in_vain || differs) {
    Error conflict = conflict_error(member, text_of_regroup(new_size, min_size));
    conflict.round = in_vain ? round->number : 0;
    ++member.next_attempt;
    if (in_vain) epoch_->rounds.decide_failed(conflict);
    fail_attempt(conflict);
    return room_.host.answer(context, answer_of_failure(decided_.back().failure, {}));
  }
  if (!wait(context, member)) return;
  if (!attempt_.open) {
    attempt_.open = true;
    attempt_.opened = room_.host.now();
    attempt_.new_size = new_size;
    attempt_.min_size = min_size;
    attempt_.least_next_round = member.next_round;
  }
  attempt_.least_next_round = std::min(attempt_.least_next_round, member.next_round);
  ++attempt_.caller_count;
  ++member.next_attempt;
  room_.touch(*this);
}

std::optional<Error> Group::regroup_refusal(const RequestContext& context, const Member& member,
                                            std::uint32_t new_size, std::uint32_t min_size) const {
  const auto invalid = [&](std::string detail) {
    return error(ErrorCode::invalid_argument, std::move(detail));
  };
  const Options& options = room_.host.options();
  const std::uint32_t size_max = options.limits.world_size_max;
  if (context.timeout <= Duration::zero()) return invalid("a regroup's timeout is above zero");
  if (new_size > size_max) {
    return invalid("the new size is above the server's limit of " + std::to_string(size_max));
  }
  if (new_size != 0 && min_size > new_size) return invalid("min_size is above the new size");
  if (called(member) && (new_size != attempt_.new_size || min_size != attempt_.min_size)) {
    return error(ErrorCode::busy, "this rank waits in a regroup of other sizes");
  }
  const Roster& roster = epoch_->roster;
  for (std::uint32_t rank = new_size; new_size != 0 && rank < roster.world_size(); ++rank) {
    if (!roster.members[rank].live()) continue;
    return invalid("rank " + std::to_string(rank) + " lives and keeps its rank, which is beyond " +
                   "the new size; regroup without a size renumbers");
  }
  if (decided_.size() > options.open_rounds_max && !called(member) &&
      member.next_attempt == attempt_.number) {
    Error full = error(ErrorCode::resource_exhausted,
                       "open_rounds_max: members have yet to take part in older regroups");
    full.limit = options.open_rounds_max;
    full.actual = decided_.size();
    return full;
  }
  return std::nullopt;
}

bool Group::wait(const RequestContext& context, Member& member) {
  Parked* parked = room_.host.park(context);
  if (parked == nullptr) return false;
  auto wait = std::make_unique<RegroupWait>(*this, member, *parked);
  attempt_.waits.append(wait->link);
  parked->wait = std::move(wait);
  return true;
}

/// A call that was made before: its answer did not come.
void Group::repeat_regroup(const RequestContext& context, Member& member, std::uint64_t number) {
  if (number == attempt_.number && attempt_.open) {
    wait(context, member);
    return;
  }
  if (number < attempt_.number && number >= first_decided()) {
    const Failure& failure = decided_[number - first_decided()].failure;
    return room_.host.answer(context, answer_of_failure(failure, {}));
  }
  Error gap = error(ErrorCode::sequence_gap, "the regroup's outcome is not known any more");
  gap.expected = member.next_attempt;
  gap.actual = number;
  room_.host.fail(context, std::move(gap));
}

void Group::call_late(const RequestContext& context, Member& member) {
  DecidedAttempt& decided = decided_[member.next_attempt - first_decided()];
  room_.host.answer(context, answer_of_failure(decided.failure, {}));
  ++member.next_attempt;
  --decided.to_come;
  trim_decided();
}

void Group::cancel_regroup(const Member& member, std::uint64_t attempt) {
  if (!attempt_.open || attempt + member.join_attempts != attempt_.number) return;
  Error cancelled = error(ErrorCode::cancelled, "");
  epoch_->roster.blame(cancelled, member);
  fail_attempt(cancelled);
}

/// One stays until all have called the next: until then a caller that has not got its answer asks.
void Group::trim_decided() {
  while (decided_.size() > 1 && decided_[1].to_come == 0) decided_.pop_front();
}

void Group::fail_attempt(const Error& error) {
  DecidedAttempt decided{make_failure(room_.quota, error), 0};
  for (const Member& member : epoch_->roster.members) {
    if (member.live() && !called(member)) ++decided.to_come;
  }
  const Failure failure = decided.failure;
  decided_.push_back(std::move(decided));
  ++attempt_.number;
  trim_decided();
  Chain<RegroupWait> waits;
  waits.append_all(attempt_.waits);
  close_attempt();
  while (!waits.empty()) {
    Parked& parked = waits.first().parked;
    const Duration elapsed = room_.host.now() - parked.received;
    room_.host.answer(parked, answer_of_failure(failure, elapsed));
  }
}

void Group::close_attempt() {
  attempt_.open = false;
  attempt_.caller_count = 0;
  if (epoch_ != nullptr) epoch_->abandoned.disarm();
}

void Group::reset_attempts() {
  attempt_.number = 1;
  decided_.clear();
  close_attempt();
}

/// A member is no longer live: what was to come from it does not.
void Group::departed(const Member& member) {
  room_.touch(*this);
  for (std::uint64_t number = std::max(member.next_attempt, first_decided());
       number < attempt_.number; ++number) {
    --decided_[number - first_decided()].to_come;
  }
  trim_decided();
  if (!called(member)) return;
  if (--attempt_.caller_count == 0) close_attempt();
  for (auto each = attempt_.waits.begin(); each != attempt_.waits.end();) {
    RegroupWait& wait = *each++;
    if (&wait.member != &member) continue;
    const Roster& roster = epoch_->roster;
    room_.host.fail(wait.parked, roster.broken() ? roster.loss_error() : roster.leave_error());
  }
}

void Group::lose(Member& member, LossCause cause) {
  epoch_->lose(member, cause);
  departed(member);
}

void Group::leave(Member& member) {
  epoch_->leave(member);
  departed(member);
}

void Group::collective(const RequestContext& context, Member& member,
                       const wire::CollectiveCall& request) {
  Rounds& rounds = epoch_->rounds;
  const bool in_vain = attempt_.open && epoch_->roster.whole() &&
                       request.round >= attempt_.least_next_round &&
                       !rounds.is_decided(request.round);
  if (!in_vain) {
    rounds.call(context, member, request, nullptr);
    return;
  }
  Error conflict =
      conflict_error(member, text_of(RoundCall{request.collective, request.root, request.codec}));
  conflict.round = request.round;
  if (rounds.call(context, member, request, &conflict)) fail_attempt(conflict);
}

bool Group::regroup_if_due() {
  const std::uint32_t live = epoch_->roster.live_count;
  if (!attempt_.open || attempt_.caller_count < live) return false;
  if (attempt_.new_size > live + standbys_.size() + rank_candidates_.size()) return false;
  std::vector<Seat> seats = survivors(false);
  place_candidates(seats);
  if (attempt_.new_size != 0 && seats.size() != attempt_.new_size) return false;
  form_epoch(seats, nullptr);
  return true;
}

void RegroupWait::timed_out() {
  GroupRoom& room = group.room();
  group.timed_out(*this);
  room.work();
}

void RegroupWait::abandoned() { group.abandoned(*this); }

std::string RegroupWait::target() const { return text_of(member.roster); }

void Group::timed_out(RegroupWait& wait) { regroup_deadline(wait.member, wait.parked.timeout); }

/// The call stays: its deadline decides as if its rank still waited.
void Group::abandoned(RegroupWait& wait) {
  Timer& timer = epoch_->abandoned;
  if (!timer.armed() || wait.parked.deadline < timer.at()) {
    attempt_.abandoned_by = wait.member.rank;
    attempt_.abandoned_timeout = wait.parked.timeout;
    room_.host.timers().arm(timer, wait.parked.deadline);
  }
  wait.parked.wait.reset();
}

void Group::abandoned_regroup_due() {
  regroup_deadline(epoch_->roster.members[attempt_.abandoned_by], attempt_.abandoned_timeout);
  room_.touch(*this);
}

void Group::regroup_deadline(const Member& decider, Duration timeout) {
  if (attempt_.min_size != 0) {
    std::vector<Seat> seats = survivors(true);
    place_candidates(seats);
    if (seats.size() >= attempt_.min_size) return form_epoch(seats, &decider);
  }
  fail_attempt(regroup_timeout(decider, timeout));
}

std::vector<Group::Seat> Group::survivors(bool only_callers) {
  std::vector<Seat> seats;
  for (Member& member : epoch_->roster.members) {
    if (!member.live() || (only_callers && !called(member))) continue;
    seats.push_back({member.rank, member.session, &member, nullptr});
  }
  return seats;
}

/// Fills what is free below the size that was asked for, if one was. Who asked for a rank gets
/// that one or none; a standby gets its rank if it is free, else the lowest that is.
void Group::place_candidates(std::vector<Seat>& seats) {
  const std::uint32_t size = attempt_.new_size;
  if (size == 0) return;
  std::vector<bool> taken(size);
  for (const Seat& seat : seats) taken[seat.rank] = true;
  const auto place = [&](std::uint32_t rank, Joiner& joiner) {
    taken[rank] = true;
    seats.push_back({rank, &joiner.session, nullptr, &joiner});
  };
  for (const auto& [rank, joiner] : rank_candidates_) {
    if (rank < size && !taken[rank] && joiner->world_size == size) place(rank, *joiner);
  }
  std::vector<Joiner*> anywhere;
  std::size_t room = size - seats.size();
  for (const auto& [arrival, joiner] : standbys_) {
    if (room-- == 0) break;
    if (joiner->rank < size && !taken[joiner->rank]) {
      place(joiner->rank, *joiner);
    } else {
      anywhere.push_back(joiner);
    }
  }
  std::uint32_t lowest = 0;
  for (Joiner* joiner : anywhere) {
    while (taken[lowest]) ++lowest;
    place(lowest, *joiner);
  }
  std::sort(seats.begin(), seats.end(),
            [](const Seat& left, const Seat& right) { return left.rank < right.rank; });
}

/// `caller` calls something that the others wait for in vain, or not as they do.
Error Group::conflict_error(const Member& caller, const std::string& called_instead) const {
  const Roster& roster = epoch_->roster;
  const Round* round = epoch_->rounds.undecided();
  Error conflict = error(ErrorCode::collective_mismatch, "");
  for (const Member& member : roster.members) {
    if (!member.live()) continue;
    RankReport report = report_of(room_.host, member);
    if (&member == &caller) {
      report.called = called_instead;
      add_rank_in_full(conflict, std::move(report));
      continue;
    }
    if (called(member)) {
      report.called = text_of_regroup(attempt_.new_size, attempt_.min_size);
    } else if (round != nullptr && member.next_round > round->number) {
      report.called = text_of(round->call);
    } else {
      continue;
    }
    add_rank(conflict, member.rank, [&] { return std::move(report); });
  }
  return conflict;
}

/// Of the size that the open attempt asks for, when all live members have come.
std::vector<std::uint32_t> Group::ranks_without_candidate() {
  std::vector<Seat> seats = survivors(false);
  place_candidates(seats);
  std::vector<std::uint32_t> ranks;
  auto seat = seats.begin();
  for (std::uint32_t rank = 0; rank < attempt_.new_size; ++rank) {
    if (seat != seats.end() && seat->rank == rank) {
      ++seat;
    } else {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

Error Group::regroup_timeout(const Member& decider, Duration timeout) {
  Error late = error(ErrorCode::timed_out, "");
  late.decided_by_rank = static_cast<int>(decider.rank);
  late.decided_by_timeout = timeout;
  for (const Member& member : epoch_->roster.members) {
    if (member.live() && !called(member)) epoch_->roster.blame(late, member);
  }
  if (late.rank_ranges.empty()) blame_without_candidate(late);
  return late;
}

/// All live members wait in a regroup, and for whom?
void Group::blame_without_candidate(Error& late) {
  late.detail = "all live members came, but no candidates for these ranks";
  for (const std::uint32_t rank : ranks_without_candidate()) {
    add_rank(late, rank, [&] { return report_of_absent(rank); });
  }
}

}  // namespace muster::core
