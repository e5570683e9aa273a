#pragma once

#include <chrono>
#include <cstdint>

#include "muster/types.h"

// Time as the pure parts see it. An Instant is handed in with every event; nothing in core or in
// the client's protocol can read a clock, because this one has no now().

namespace muster::base {

struct MonotonicClock {
  using rep = std::int64_t;
  using period = std::micro;
  using duration = Duration;
  using time_point = std::chrono::time_point<MonotonicClock>;
  static constexpr bool is_steady = true;
};

using Instant = MonotonicClock::time_point;

inline constexpr Instant far_future = Instant::max();

/// The longest time that a request may ask for; longer ones are clamped to it.
inline constexpr Duration timeout_max = std::chrono::hours(24 * 30);

/// `now + timeout` with the timeout clamped to 0..timeout_max, so that it cannot overflow.
constexpr Instant deadline_after(Instant now, Duration timeout) {
  if (timeout < Duration::zero()) timeout = Duration::zero();
  return now + (timeout < timeout_max ? timeout : timeout_max);
}

}  // namespace muster::base
