#include "core/groups/join_rules.h"

#include <string>
#include <utility>

#include "base/text.h"
#include "core/groups/group_entries.h"
#include "core/session/failure.h"

namespace muster::core {
namespace {

std::uint64_t microseconds(Duration duration) {
  return static_cast<std::uint64_t>(duration.count());
}

std::string text_of_sizes(std::uint32_t of_group, std::uint32_t given) {
  return "world_size is " + std::to_string(of_group) + ", not " + std::to_string(given);
}

}  // namespace

// The rules, in their order. The first one, "no live member: a new epoch forms", is that a group
// without an epoch and without seats takes anybody's values.

Verdict JoinRules::judge(const Session& session, const wire::Join& request) const {
  const Forming& forming = joiners_.forming();
  const bool has_values = epoch_ != nullptr || !forming.empty();
  if (epoch_ == nullptr && has_values && request.world_size != forming.world_size()) {
    return Verdict::refusal(
        mismatch_error(forming.world_size(), request.world_size,
                       text_of_sizes(forming.world_size(), request.world_size)));
  }
  const Duration data_expiration =
      epoch_ != nullptr ? epoch_->roster.data_expiration : forming.data_expiration();
  if (has_values && request.data_expiration != data_expiration) {
    return Verdict::refusal(mismatch_error(microseconds(data_expiration),
                                           microseconds(request.data_expiration),
                                           "data expiration is " + in_seconds(data_expiration) +
                                               ", not " + in_seconds(request.data_expiration)));
  }
  Joiner* own = joiners_.of(session);
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

Verdict JoinRules::judge_forming(const wire::Join& request) const {
  Joiner* const seated = joiners_.forming().at(request.rank);
  if (seated == nullptr) return {Verdict::Kind::seat, {}};
  Verdict verdict = judge_holder(seated->session, request.rank);
  if (verdict.kind == Verdict::Kind::displace_joiner) verdict.joiner = seated;
  return verdict;
}

Verdict JoinRules::judge_formed(const Session& session, const wire::Join& request) const {
  Member* own = epoch_->roster.find(session);
  if (own != nullptr && own->live()) {
    if (own->rank != request.rank) {
      return Verdict::refusal(error(
          ErrorCode::invalid_argument,
          "this session is rank " + std::to_string(own->rank) + " of the group; leave first"));
    }
    if (!epoch_->roster.whole()) return {Verdict::Kind::regroup, {}, own};
    const std::uint32_t world_size = epoch_->roster.world_size();
    if (request.world_size == world_size) return {Verdict::Kind::same_answer, {}, own};
    return Verdict::refusal(mismatch_error(world_size, request.world_size,
                                           text_of_sizes(world_size, request.world_size)));
  }
  Member* holder = epoch_->roster.at(request.rank);
  if (holder != nullptr && holder->live()) {
    Verdict verdict = judge_holder(*holder->session, request.rank);
    if (verdict.kind != Verdict::Kind::displace_joiner) return verdict;
    return {Verdict::Kind::displace_member, {}, holder};
  }
  const auto& candidates = joiners_.candidates().by_rank;
  const auto rival = candidates.find(request.rank);
  if (!request.standby && rival != candidates.end()) {
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

Verdict JoinRules::judge_holder(Session& holder, std::uint32_t rank) const {
  const bool is_away = holder.connection == 0;
  if (is_away) return {Verdict::Kind::displace_joiner, {}};
  if (!is_silent(services_, holder)) return Verdict::refusal(in_use_error(holder, rank));
  return {Verdict::Kind::claim, {}, nullptr, nullptr, &holder};
}

Error JoinRules::error(ErrorCode code, std::string detail) const {
  Error error = failure(code, std::move(detail));
  error.group = group_;
  error.epoch = epoch_ != nullptr ? epoch_->roster.epoch : 0;
  error.decided_by = "server";
  return error;
}

Error JoinRules::mismatch_error(std::uint64_t expected, std::uint64_t actual,
                                std::string detail) const {
  Error mismatch = mismatch_error(std::move(detail));
  mismatch.expected = expected;
  mismatch.actual = actual;
  return mismatch;
}

Error JoinRules::mismatch_error(std::string detail) const {
  Error mismatch = error(ErrorCode::group_mismatch, "the group's " + std::move(detail));
  for (const auto& [arrival, joiner] : joiners_.all()) {
    if (joiner->place != Joiner::Place::seat) continue;
    const Joiner& first = *joiner;
    add_rank(mismatch, first.rank, [&] { return report_of(services_, first.rank, first.session); });
    break;
  }
  return mismatch;
}

Error JoinRules::in_use_error(const Session& holder, std::uint32_t rank) const {
  Error in_use = error(ErrorCode::rank_in_use, "");
  add_rank(in_use, rank, [&] { return report_of(services_, rank, holder); });
  return in_use;
}

Error JoinRules::closed_error() const {
  Error closed = error(ErrorCode::group_closed, "the group is whole");
  for (const Member& member : epoch_->roster.members) {
    if (member.live()) epoch_->roster.blame(closed, member);
  }
  return closed;
}

}  // namespace muster::core
