#include "core/groups/regroups/reach.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace muster::core {
namespace {

bool is_lost(const RankReport& report) { return report.cause != LossCause::none; }

}  // namespace

void Reach::gone(std::uint32_t rank, RankReport report) {
  if (!was_whole_) return;
  is_known_ = false;
  gone_.emplace(rank, std::move(report));
}

std::optional<Error> Reach::look(const Roster& roster, const Seating& seating,
                                 const RegroupSizes& sizes) {
  if (sizes.size() == 0 || std::exchange(is_known_, true)) return std::nullopt;
  was_whole_ = seating.count_max() >= sizes.size() && seating.empty_ranks(sizes).empty();
  if (was_whole_) gone_.clear();
  if (gone_.empty()) return std::nullopt;
  return error_of(roster, seating, sizes);
}

Error Reach::error_of(const Roster& roster, const Seating& seating, const RegroupSizes& sizes) {
  std::vector<RankReport> reports;
  for (const std::uint32_t rank : seating.empty_ranks(sizes)) {
    auto would_have = gone_.find(rank);
    if (would_have == gone_.end()) would_have = gone_.begin();
    if (would_have == gone_.end()) break;
    reports.push_back(std::move(would_have->second));
    reports.back().rank = static_cast<int>(rank);
    gone_.erase(would_have);
  }
  const bool any_lost = std::any_of(reports.begin(), reports.end(), is_lost);
  Error error = roster.error(
      any_lost ? ErrorCode::rank_lost : ErrorCode::rank_left,
      "they were there for the new size of " + std::to_string(sizes.size()) +
          ", and are gone; a regroup that is called now waits for others in their place");
  for (RankReport& report : reports) {
    if (any_lost && !is_lost(report)) continue;
    if (error.ranks.empty()) error.cause = report.cause;
    if (report.cause != error.cause) error.cause = LossCause::none;
    const auto rank = static_cast<std::uint32_t>(report.rank);
    add_rank(error, rank, [&] { return std::move(report); });
  }
  return error;
}

}  // namespace muster::core
