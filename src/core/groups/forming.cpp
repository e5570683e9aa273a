#include "core/groups/forming.h"

#include <string>

#include "core/groups/joiners.h"
#include "core/groups/roster.h"

namespace muster::core {

void Forming::seat(Joiner& joiner) {
  if (seats_.empty()) {
    world_size_ = joiner.world_size;
    data_expiration_ = joiner.data_expiration;
  }
  if (!seats_.contains(joiner.rank)) never_joined_.clear();
  seats_[joiner.rank] = &joiner;
  ++seated_count_;
}

void Forming::leave(const Joiner& joiner) {
  seats_.erase(joiner.rank);
  never_joined_.clear();
  if (--seated_count_ == 0) seats_.clear();
}

void Forming::give_up(const Joiner& joiner) {
  seats_[joiner.rank] = nullptr;
  if (--seated_count_ == 0) seats_.clear();
}

Joiner* Forming::at(std::uint32_t rank) const {
  const auto found = seats_.find(rank);
  return found == seats_.end() ? nullptr : found->second;
}

std::vector<Joiner*> Forming::joiners() const {
  std::vector<Joiner*> seated;
  seated.reserve(seated_count_);
  for (const auto& [rank, joiner] : seats_) {
    if (joiner != nullptr) seated.push_back(joiner);
  }
  return seated;
}

void Forming::blame_absent(Error& timeout) {
  timeout.detail =
      std::to_string(seated_count_) + " of " + std::to_string(world_size_) + " ranks were there";
  timeout.rank_ranges = never_joined();
  if (timeout.rank_ranges.empty()) {
    timeout.detail += "; the others had joined and given up at their own deadlines";
    for (const auto& [rank, seated] : seats_) {
      if (seated == nullptr) add_rank(timeout, rank, [r = rank] { return report_of_absent(r); });
    }
    return;
  }
  for (const RankRange range : timeout.rank_ranges) {
    for (int rank = range.first; rank <= range.last; ++rank) {
      if (timeout.ranks.size() == wire::ranks_in_full_max) return;
      timeout.ranks.push_back(report_of_absent(static_cast<std::uint32_t>(rank)));
    }
  }
}

/// Kept, since all joiners may time out one after the other.
const std::vector<RankRange>& Forming::never_joined() {
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
