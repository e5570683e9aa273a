#include "client/group/group_losses.h"

#include <algorithm>
#include <utility>

#include "base/rank_ranges.h"

namespace muster::client {

GroupLosses::GroupLosses(GroupIdentity identity, const GroupOptions& options,
                         const Handlers& handlers)
    : identity_(std::move(identity)),
      on_loss_(options.on_loss),
      on_leave_(options.on_leave),
      handlers_(handlers),
      told_ranks_(static_cast<std::size_t>(identity_.world_size)) {}

void GroupLosses::lost(Error error) {
  Error told = first_told(std::move(error));
  if (told.rank_ranges.empty()) return;
  told = named(std::move(told));
  watches_.tell(told);
  const bool has_left = told.code == ErrorCode::rank_left;
  const auto& hear = has_left ? on_leave_ : on_loss_;
  if (!hear) return;
  handlers_.dispatch(has_left ? "on_leave" : "on_loss",
                     [hear, told = std::move(told)] { hear(told); });
}

void GroupLosses::interrupted(Error error) {
  if (error.round <= interrupted_round_) return;
  interrupted_round_ = error.round;
  watches_.tell(named(std::move(error)));
}

Error GroupLosses::named(Error error) const {
  error.group = identity_.group;
  error.epoch = identity_.epoch;
  if (error.where.empty()) error.where = identity_.where;
  return error;
}

/// `error` without the ranks that were told of before.
Error GroupLosses::first_told(Error error) {
  std::vector<RankRange> ranges;
  std::vector<bool> fresh(told_ranks_.size());
  for (const RankRange range : error.rank_ranges) {
    const int last = std::min(range.last, identity_.world_size - 1);
    for (int rank = std::max(range.first, 0); rank <= last; ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      if (told_ranks_[index]) continue;
      told_ranks_[index] = true;
      fresh[index] = true;
      base::add_to(ranges, rank);
    }
  }
  error.rank_ranges = std::move(ranges);
  const auto was_told = [&](const RankReport& report) {
    const auto index = static_cast<std::size_t>(report.rank);
    return report.rank < 0 || index >= fresh.size() || !fresh[index];
  };
  error.ranks.erase(std::remove_if(error.ranks.begin(), error.ranks.end(), was_told),
                    error.ranks.end());
  return error;
}

}  // namespace muster::client
