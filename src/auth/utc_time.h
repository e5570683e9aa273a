#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::auth {

/// The time of the calendar, in seconds since 1970 without leap seconds. Nothing here can read it:
/// this clock has no now().
struct UtcClock {
  using rep = std::int64_t;
  using period = std::ratio<1>;
  using duration = std::chrono::seconds;
  using time_point = std::chrono::time_point<UtcClock>;
  static constexpr bool is_steady = false;
};

using UtcTime = UtcClock::time_point;

/// Reads "2027-01-31T00:00:00Z", of the years 1970 to 9999, and nothing else.
std::optional<UtcTime> read_utc_time(std::string_view text);

/// As `read_utc_time` reads it.
std::string to_string(UtcTime time);

}  // namespace muster::auth
