#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "client/failure.h"
#include "muster/process_group.h"

namespace muster::communicator {

/// A digest of the group's name, the server's incarnation, the epoch and its size.
std::uint64_t digest_of_epoch(const StatelessProcessGroup& group);

/// A digest of this host's name and boot.
std::uint64_t host_digest();

/// Why these ranks get no communicator, and which ranks are at fault.
struct Rejection {
  Error error;
  std::function<bool(int rank)> is_at_fault;
};

/// The ranks for whose report, beside that of rank 0, `is_odd` holds.
template <class Report, class IsOdd>
std::function<bool(int rank)> ranks_where(const std::vector<Report>& reports, IsOdd is_odd) {
  return [reports, is_odd](int rank) {
    return is_odd(reports[static_cast<std::size_t>(rank)], reports.front());
  };
}

/// Rejects ranks that cannot take part; then those that are not in rank 0's group. A report has
/// `rank`, `members` and `failure`.
template <class Report>
std::optional<Rejection> find_common_rejection(const std::vector<Report>& reports) {
  for (const Report& report : reports) {
    if (!report.failure) continue;
    return Rejection{*report.failure, ranks_where(reports, [code = report.failure->code](
                                                               const auto& each, const auto&) {
                       return each.failure && each.failure->code == code;
                     })};
  }
  const auto is_member = [](const Report& each, const Report& first, int rank) {
    return each.rank == rank && each.members == first.members;
  };
  int rank = 0;
  for (const Report& report : reports) {
    if (is_member(report, reports.front(), rank++)) continue;
    return Rejection{
        client::failure(ErrorCode::mismatch, "another rank or other members than the group has"),
        [reports, is_member](int other) {
          return !is_member(reports[static_cast<std::size_t>(other)], reports.front(), other);
        }};
  }
  return std::nullopt;
}

}  // namespace muster::communicator
