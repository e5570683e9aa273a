#include "muster/turns.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "base/failure.h"
#include "runtime/rank_group.h"
#include "runtime/turn.h"

MUSTER_BEGIN_NAMESPACE

namespace detail {

using runtime::Turn;

namespace {

/// A call that is refused on this rank counts all the same: others may have begun it.
std::optional<Error> refusal_of(const RankGroup& group, std::string_view operation,
                                const TurnOptions& options) {
  if (group.impl() != nullptr) group.impl()->begin_turn();
  Error error;
  if (group.impl() == nullptr) {
    error = base::failure(ErrorCode::not_initialized,
                          "this group is of no ranks: Runtime::init comes first");
  } else if (std::min(options.silence_max, options.limit) <= Duration::zero()) {
    error = base::failure(ErrorCode::invalid_argument,
                          "TurnOptions: silence_max and limit are above zero");
  } else {
    return {};
  }
  error.operation = operation;
  return error;
}

/// The ranks whose leader this is, without itself.
std::vector<int> followers_of(const std::vector<int>& leaders, int leader) {
  std::vector<int> followers;
  for (int rank = 0; rank < static_cast<int>(leaders.size()); ++rank)
    if (rank != leader && leaders[static_cast<std::size_t>(rank)] == leader)
      followers.push_back(rank);
  return followers;
}

std::vector<int> all_but_zero(int world_size) {
  std::vector<int> ranks(static_cast<std::size_t>(world_size - 1));
  std::iota(ranks.begin(), ranks.end(), 1);
  return ranks;
}

/// Rank 0 learns how all works have ended, and tells all.
Result<void> end_together(Turn& turn, const TurnOutcome& own) {
  if (turn.rank() != 0) {
    if (auto told = turn.tell(0, own); !told) return told;
    auto all_ended = turn.value_of(0);
    if (!all_ended) return std::move(all_ended).error();
    return {};
  }
  std::vector<int> failed;
  std::string why;
  Result<void> heard;
  const auto count = [&](int rank, const TurnOutcome& outcome) {
    if (!outcome.failure) return;
    why += (failed.empty() ? "rank " : "; rank ") + std::to_string(rank) + ": " + *outcome.failure;
    failed.push_back(rank);
  };
  count(0, own);
  for (const int rank : all_but_zero(turn.world_size())) {
    auto outcome = turn.outcome_of(rank);
    if (outcome) {
      count(rank, *outcome);
    } else if (heard) {
      heard = std::move(outcome).error();
    }
  }
  TurnOutcome together;
  if (!heard) {
    together.failure = heard.error().message();
    for (const RankReport& report : heard.error().ranks)
      together.failed_ranks.push_back(report.rank);
  } else if (!failed.empty()) {
    together.failure = why;
    together.failed_ranks = failed;
  }
  auto told = turn.tell_all(all_but_zero(turn.world_size()), together);
  if (!heard) return heard;
  if (!failed.empty()) return turn.failed(failed, std::move(why));
  return told;
}

}  // namespace

Result<std::string> run_on_rank_zero(RankGroup& group, const Work& work,
                                     const TurnOptions& options) {
  if (auto refusal = refusal_of(group, "on_rank_zero", options)) return *std::move(refusal);
  Turn turn(*group.impl(), "on_rank_zero", options);
  if (turn.rank() != 0) return turn.value_of(0);
  const TurnOutcome outcome = work(turn.progress());
  auto told = turn.tell_all(all_but_zero(turn.world_size()), outcome);
  if (!told) return std::move(told).error();
  return std::string();
}

/// The ranks stand in at most `count` rows, one behind the other. A rank begins when the one before
/// it has ended, so there are never more than `count` at work.
Result<void> run_n_at_a_time(RankGroup& group, int count, const Work& work,
                             const TurnOptions& options) {
  auto refusal = refusal_of(group, "n_at_a_time", options);
  if (!refusal && count < 0) {
    refusal = base::failure(ErrorCode::invalid_argument,
                            "count is " + std::to_string(count) + ": zero or above");
    refusal->operation = "n_at_a_time";
  }
  if (refusal) return *std::move(refusal);
  Turn turn(*group.impl(), "n_at_a_time", options);
  if (count == 0) {
    const std::vector<int> leaders = group.impl()->leaders_on_nodes();
    count = static_cast<int>(std::set<int>(leaders.begin(), leaders.end()).size());
  }
  const int rows = std::min(count, turn.world_size());
  const int length = (turn.world_size() + rows - 1) / rows;  // of a row
  const bool is_first = turn.rank() % length == 0;
  const bool is_last = turn.rank() % length == length - 1 || turn.rank() == turn.world_size() - 1;

  TurnOutcome outcome;
  Result<TurnOutcome> before = TurnOutcome();
  if (!is_first) before = turn.outcome_of(turn.rank() - 1);
  if (before) {
    outcome = work(turn.progress());
  } else {
    outcome.failure = "it had no turn: " + before.error().message();
  }
  // Whoever comes next has its turn in any case.
  Result<void> passed;
  if (!is_last) passed = turn.tell(turn.rank() + 1, {});
  auto ended = end_together(turn, outcome);
  if (!before) return std::move(before).error();
  return ended ? passed : ended;
}

Result<void> run_leader_first(RankGroup& group, Shared shared, const Work& work,
                              const TurnOptions& options) {
  const std::string_view operation =
      shared == Shared::node ? "local_rank_zero_first" : "fs_local_rank_zero_first";
  if (auto refusal = refusal_of(group, operation, options)) return *std::move(refusal);
  Turn turn(*group.impl(), operation, options);
  const std::vector<int> leaders = shared == Shared::node ? group.impl()->leaders_on_nodes()
                                                          : group.impl()->leaders_on_file_systems();
  const int leader = leaders[static_cast<std::size_t>(turn.rank())];
  if (turn.rank() == leader) {
    const TurnOutcome outcome = work(turn.progress());
    return turn.tell_all(followers_of(leaders, leader), outcome);
  }
  auto told = turn.value_of(leader);
  if (!told) return std::move(told).error();
  work(turn.progress());
  return {};
}

}  // namespace detail

MUSTER_END_NAMESPACE
