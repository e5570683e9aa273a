#include <utility>

#include "core/failure.h"
#include "core/group.h"

// The join rules: what becomes of somebody who wants to be in the group. They are applied when a
// join comes, and again whenever its joiner has lost its place.

namespace muster::core {
namespace {

wire::Join request_of(const Joiner& joiner) {
  wire::Join request;
  request.rank = joiner.rank;
  request.world_size = joiner.world_size;
  request.data_expiration = joiner.data_expiration;
  request.standby = joiner.standby;
  return request;
}

std::uint64_t microseconds(Duration duration) {
  return static_cast<std::uint64_t>(duration.count());
}

}  // namespace

struct Group::Verdict {
  enum class Kind {
    refuse,
    same_answer,  ///< it is a member of a whole epoch
    regroup,      ///< it is a member of one that is not whole
    attach,       ///< it waits already
    seat,
    candidate,
    claim,
    displace_member,  ///< the rank's holder is gone; judge again without it
    displace_joiner,
  };
  Kind kind;
  Error error;
  Member* member = nullptr;
  Joiner* joiner = nullptr;
  Session* holder = nullptr;

  static Verdict refusal(Error why) { return {Kind::refuse, std::move(why)}; }
};

void Group::join(const RequestContext& context, const wire::Join& request) {
  Verdict verdict = judge(context.session, request);
  switch (verdict.kind) {
    case Verdict::Kind::refuse: return room_.host.fail(context, std::move(verdict.error));
    case Verdict::Kind::same_answer: return answer_formed(context, *verdict.member);
    case Verdict::Kind::regroup: {
      Member& member = *verdict.member;
      const std::uint64_t before = member.next_attempt;
      call_regroup(context, member, request.world_size, 0);
      member.join_attempts += member.next_attempt - before;
      return;
    }
    case Verdict::Kind::attach: return attach(context, *verdict.joiner);
    default: return admit(context, request);
  }
}

// The join rules, in their order. The first one, "no live member: a new epoch forms", is that a
// group without an epoch and without seats takes anybody's values.

Group::Verdict Group::judge(const Session& session, const wire::Join& request) {
  const bool has_values = epoch_ != nullptr || !seats_.empty();
  if (epoch_ == nullptr && has_values && request.world_size != world_size_) {
    return Verdict::refusal(mismatch_error(world_size_, request.world_size, "world_size"));
  }
  if (has_values && request.data_expiration != data_expiration_) {
    return Verdict::refusal(mismatch_error(microseconds(data_expiration_),
                                           microseconds(request.data_expiration),
                                           "data expiration, in microseconds"));
  }
  Joiner* own = joiner_of(session);
  if (own != nullptr && own->place != Joiner::Place::none) {
    if (own->rank == request.rank && own->world_size == request.world_size) {
      return {Verdict::Kind::attach, {}, nullptr, own};
    }
    return Verdict::refusal(
        error(ErrorCode::invalid_argument, "this session waits already to join as rank " +
                                               std::to_string(own->rank) + " of " +
                                               std::to_string(own->world_size)));
  }
  return epoch_ == nullptr ? judge_forming(request) : judge_formed(session, request);
}

Group::Verdict Group::judge_forming(const wire::Join& request) {
  const auto seat = seats_.find(request.rank);
  if (seat == seats_.end() || seat->second == nullptr) return {Verdict::Kind::seat, {}};
  Verdict verdict = judge_holder(seat->second->session, request.rank);
  if (verdict.kind == Verdict::Kind::displace_joiner) verdict.joiner = seat->second;
  return verdict;
}

Group::Verdict Group::judge_formed(const Session& session, const wire::Join& request) {
  Member* own = epoch_->roster.find(session);
  if (own != nullptr && own->live()) {
    if (own->rank != request.rank) {
      return Verdict::refusal(error(
          ErrorCode::invalid_argument,
          "this session is rank " + std::to_string(own->rank) + " of the group; leave first"));
    }
    if (!epoch_->roster.whole()) return {Verdict::Kind::regroup, {}, own};
    if (request.world_size == world_size_) return {Verdict::Kind::same_answer, {}, own};
    return Verdict::refusal(mismatch_error(world_size_, request.world_size, "world_size"));
  }
  Member* holder = epoch_->roster.at(request.rank);
  if (holder != nullptr && holder->live()) {
    Verdict verdict = judge_holder(*holder->session, request.rank);
    if (verdict.kind != Verdict::Kind::displace_joiner) return verdict;
    return {Verdict::Kind::displace_member, {}, holder};
  }
  const auto rival = rank_candidates_.find(request.rank);
  if (!request.standby && rival != rank_candidates_.end()) {
    Verdict verdict = judge_holder(rival->second->session, request.rank);
    if (verdict.kind == Verdict::Kind::displace_joiner) verdict.joiner = rival->second;
    return verdict;
  }
  const bool free_rank = holder != nullptr && holder->standing == Standing::left;
  const bool broken = epoch_->roster.broken();
  if (broken || free_rank || request.standby) {
    return {Verdict::Kind::candidate, {}};
  }
  return Verdict::refusal(closed_error());
}

Group::Verdict Group::judge_holder(Session& holder, std::uint32_t rank) {
  const bool is_away = holder.connection == 0;
  if (is_away) return {Verdict::Kind::displace_joiner, {}};
  if (!is_silent(room_.host, holder)) return Verdict::refusal(in_use_error(holder, rank));
  return {Verdict::Kind::claim, {}, nullptr, nullptr, &holder};
}

/// Gives an unjudged joiner what the rules say, or takes one step towards it.
void Group::settle(Joiner& joiner) {
  Verdict verdict = judge(joiner.session, request_of(joiner));
  switch (verdict.kind) {
    case Verdict::Kind::displace_member: return lose(*verdict.member, LossCause::restarted);
    case Verdict::Kind::displace_joiner:
      return fail(*verdict.joiner, in_use_error(joiner.session, joiner.rank));
    case Verdict::Kind::refuse: return fail(joiner, verdict.error);
    default: break;
  }
  unjudged_.erase(joiner.arrival);
  if (verdict.kind == Verdict::Kind::seat) return take_place(joiner, Joiner::Place::seat);
  if (verdict.kind == Verdict::Kind::candidate) return take_place(joiner, Joiner::Place::candidate);
  joiner.holder = verdict.holder;
  take_place(joiner, Joiner::Place::claimant);
}

Error Group::error(ErrorCode code, std::string detail) const {
  Error error = failure(code, std::move(detail));
  error.group = name_;
  error.epoch = epoch_ != nullptr ? epoch_->roster.epoch : 0;
  error.decided_by = "server";
  return error;
}

Error Group::mismatch_error(std::uint64_t expected, std::uint64_t actual, std::string what) const {
  Error mismatch = error(ErrorCode::group_mismatch, "the group has another " + std::move(what));
  mismatch.expected = expected;
  mismatch.actual = actual;
  for (const auto& [arrival, joiner] : joiners_) {
    if (joiner->place != Joiner::Place::seat) continue;
    const Joiner& first = *joiner;
    add_rank(mismatch, first.rank,
             [&] { return report_of(room_.host, first.rank, first.session); });
    break;
  }
  return mismatch;
}

Error Group::in_use_error(const Session& holder, std::uint32_t rank) const {
  Error in_use = error(ErrorCode::rank_in_use, "");
  add_rank(in_use, rank, [&] { return report_of(room_.host, rank, holder); });
  return in_use;
}

Error Group::closed_error() const {
  Error closed = error(ErrorCode::group_closed, "the group is whole; join with standby to wait");
  for (const Member& member : epoch_->roster.members) {
    if (member.live()) epoch_->roster.blame(closed, member);
  }
  return closed;
}

/// The deadline of a joiner has passed: what did it wait for?
Error Group::timeout_error(const Joiner& joiner) {
  if (joiner.place == Joiner::Place::candidate) {
    Error waiting = error(ErrorCode::timed_out, "these members have not regrouped");
    for (const Member& member : epoch_->roster.members) {
      if (member.live() && !called(member)) epoch_->roster.blame(waiting, member);
    }
    const bool is_complete = waiting.rank_ranges.empty();
    if (is_complete) blame_without_candidate(waiting);
    return waiting;
  }
  Error timeout = error(ErrorCode::timed_out, "");
  if (joiner.place == Joiner::Place::claimant) {
    timeout.detail = "the rank's holder is silent but not declared lost yet";
    add_rank(timeout, joiner.rank,
             [&] { return report_of(room_.host, joiner.rank, *joiner.holder); });
    return timeout;
  }
  timeout.detail =
      std::to_string(seated_count_) + " of " + std::to_string(world_size_) + " ranks were there";
  timeout.rank_ranges = never_joined();
  if (timeout.rank_ranges.empty()) {
    timeout.detail += "; the others had joined and given up at their own deadlines";
    for (const auto& [rank, seated] : seats_) {
      if (seated == nullptr) add_rank(timeout, rank, [r = rank] { return report_of_absent(r); });
    }
    return timeout;
  }
  for (const RankRange range : timeout.rank_ranges) {
    for (int rank = range.first; rank <= range.last; ++rank) {
      if (timeout.ranks.size() == wire::ranks_in_full_max) return timeout;
      timeout.ranks.push_back(report_of_absent(static_cast<std::uint32_t>(rank)));
    }
  }
  return timeout;
}

/// Kept, since all joiners may time out one after the other.
const std::vector<RankRange>& Group::never_joined() {
  if (!never_joined_.empty()) return never_joined_;
  int next = 0;
  const auto close_gap = [&](int end) {
    if (next < end) never_joined_.push_back({next, end - 1});
    next = end + 1;
  };
  for (const auto& [rank, seated] : seats_) close_gap(static_cast<int>(rank));
  close_gap(static_cast<int>(world_size_));
  return never_joined_;
}

}  // namespace muster::core
