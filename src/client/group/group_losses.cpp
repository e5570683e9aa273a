#include "client/group/group_losses.h"

#include <algorithm>
#include <utility>

#include "base/rank_ranges.h"

namespace muster::client {

GroupLosses::GroupLosses(GroupIdentity identity, std::function<void(const Error& error)> on_loss,
                         const Handlers& handlers)
    : identity_(std::move(identity)),
      on_loss_(std::move(on_loss)),
      handlers_(handlers),
      told_ranks_(static_cast<std::size_t>(identity_.world_size)) {}

void GroupLosses::lost(Error error) {
  Error told = first_told(std::move(error));
  if (told.rank_ranges.empty()) return;
  told = named(std::move(told));
  watches_.tell(told);
  if (!on_loss_) return;
  handlers_.dispatch("on_loss", [on_loss = on_loss_, told = std::move(told)] { on_loss(told); });
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
