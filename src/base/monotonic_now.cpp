#include "base/monotonic_now.h"

#include <ctime>

namespace muster::base {

Instant monotonic_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);  // cannot fail with this clock and a valid address
  return Instant(std::chrono::duration_cast<Duration>(std::chrono::seconds(now.tv_sec) +
                                                      std::chrono::nanoseconds(now.tv_nsec)));
}

}  // namespace muster::base
