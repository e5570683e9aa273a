#pragma once

#include <algorithm>
#include <chrono>

#include "muster/types.h"

namespace muster::runtime {

/// A time that a caller has given, cut to 0 to a year: added to a time of the clock it does not
/// overflow.
inline Duration cut_to_a_year(Duration given) {
  return std::clamp(given, Duration::zero(), Duration(std::chrono::hours(24 * 365)));
}

}  // namespace muster::runtime
