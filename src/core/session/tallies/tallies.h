#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "base/histogram.h"
#include "core/memory/limit.h"
#include "core/session/tallies/outcomes.h"
#include "muster/error.h"
#include "wire/operation_table.h"

namespace muster::core {

/// What a parked request waits for.
enum class WaitKind : std::uint8_t { key, membership, exchange };
inline constexpr auto wait_kind_names =
    std::to_array<std::string_view>({"key", "membership", "exchange"});

/// By the indices of the rows of the table of operations.
inline constexpr auto wait_kinds = [] {
  std::array<WaitKind, wire::operations_count> kinds{};
  for (std::size_t index = 0; index < kinds.size(); ++index) {
    const wire::Operation operation = wire::operation_facts[index].number;
    if (operation == wire::operation<wire::Join> || operation == wire::operation<wire::Regroup>) {
      kinds[index] = WaitKind::membership;
    } else if (operation == wire::operation<wire::CollectiveCall> ||
               operation == wire::operation<wire::Receive> ||
               operation == wire::operation<wire::Recover>) {
      kinds[index] = WaitKind::exchange;
    }
  }
  return kinds;
}();

inline constexpr auto wait_bounds = std::to_array<Duration>({
    std::chrono::milliseconds(1),
    std::chrono::milliseconds(5),
    std::chrono::milliseconds(20),
    std::chrono::milliseconds(100),
    std::chrono::milliseconds(500),
    std::chrono::seconds(1),
    std::chrono::seconds(5),
    std::chrono::seconds(15),
    std::chrono::seconds(60),
    std::chrono::seconds(300),
    std::chrono::seconds(1800),
});
using WaitTimes = base::Histogram<wait_bounds>;

inline constexpr std::size_t loss_causes_count = static_cast<std::size_t>(LossCause::revoked) + 1;
/// By cause; those of cause none ended in order.
using LossCounts = std::array<std::uint64_t, loss_causes_count>;

/// What has happened since the start. Plain data: it is copied for who shows it.
struct Tallies {
  Outcomes outcomes;
  std::array<WaitTimes, wait_kind_names.size()> waits;  ///< of parked requests that were answered
  Refusals refusals;
  LossCounts sessions_ended{};
  LossCounts ranks_lost{};
  std::uint64_t epochs_regrouped = 0;  ///< formed from one before
  std::uint64_t epochs_broken = 0;

  void count_wait(wire::Operation operation, Duration waited) {
    waits[static_cast<std::size_t>(wait_kinds[row_of(operation)])].add(waited);
  }
  void count_ended_session(LossCause cause) { ++sessions_ended[static_cast<std::size_t>(cause)]; }
  std::uint64_t sessions_lost() const {
    return std::reduce(sessions_ended.begin() + 1, sessions_ended.end());
  }
  void count_lost_rank(LossCause cause) { ++ranks_lost[static_cast<std::size_t>(cause)]; }
};

}  // namespace muster::core
