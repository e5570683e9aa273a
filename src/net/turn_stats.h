#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "base/histogram.h"
#include "base/time.h"

namespace muster::net {

inline constexpr Duration long_turn_min = std::chrono::milliseconds(100);
inline constexpr auto turn_bounds = std::to_array<Duration>({
    std::chrono::microseconds(50),
    std::chrono::microseconds(100),
    std::chrono::microseconds(250),
    std::chrono::milliseconds(1),
    std::chrono::microseconds(2500),
    std::chrono::milliseconds(5),
    std::chrono::milliseconds(10),
    std::chrono::milliseconds(25),
    long_turn_min,
    std::chrono::milliseconds(500),
    std::chrono::seconds(2),
});
using TurnTimes = base::Histogram<turn_bounds>;

/// Statistics of a loop's turns since its start. A turn lasts from the end of one wait to the
/// start of the next one.
struct TurnStats {
  Duration longest{};
  std::uint64_t long_count = 0;  ///< longer than long_turn_min: other clients waited
  TurnTimes times;

  void add(Duration took) {
    longest = std::max(took, longest);
    times.add(took);
    if (took > long_turn_min) ++long_count;
  }
};

}  // namespace muster::net
