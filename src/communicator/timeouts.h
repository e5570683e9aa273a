#pragma once

#include <algorithm>
#include <chrono>

#include "client/failure.h"
#include "muster/result.h"
#include "muster/store_options.h"

namespace muster::communicator {

/// Longer timeouts are cut to this, so that adding one to the time does not overflow.
inline constexpr Duration longest_timeout{std::chrono::hours(24 * 365)};

/// `given`, or the default if it is `default_timeout`.
///
/// errors  invalid_argument (negative)
inline Result<Duration> timeout_or(Duration given, Duration by_default) {
  if (given == default_timeout) return std::min(by_default, longest_timeout);
  if (given < Duration::zero()) return client::invalid_argument("timeout: not negative");
  return std::min(given, longest_timeout);
}

/// How long an abort may take; a negative time counts as zero.
inline Duration abort_timeout_of(Duration given) {
  return std::clamp(given, Duration::zero(), longest_timeout);
}

}  // namespace muster::communicator
