#include "base/monotonic_now.h"

#include <ctime>

namespace muster::base {

namespace {

/// Cannot fail with the clocks below and a valid address.
Duration shown_by(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::chrono::duration_cast<Duration>(std::chrono::seconds(now.tv_sec) +
                                              std::chrono::nanoseconds(now.tv_nsec));
}

}  // namespace

Instant monotonic_now() { return Instant(shown_by(CLOCK_MONOTONIC)); }

Duration worked() { return shown_by(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace muster::base
