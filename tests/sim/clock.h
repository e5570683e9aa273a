#pragma once

#include <cstdint>

#include "base/time.h"

namespace muster::sim {

using base::Instant;

/// The monotonic clock of one machine: it began somewhere and runs a little too fast or too slow.
class Clock {
 public:
  Clock() = default;
  Clock(Instant real_start, Instant shown_then, std::int64_t drift_ppm)
      : real_start_(real_start), shown_then_(shown_then), parts_(million + drift_ppm) {}

  /// What it shows at a real instant.
  Instant shows(Instant real) const {
    return shown_then_ + Duration((real - real_start_).count() * parts_ / million);
  }

  /// The first real instant at which it shows this.
  Instant real(Instant shown) const {
    const Duration passed = shown - shown_then_;
    if (passed > std::chrono::hours(1000)) return base::far_future;
    if (passed <= Duration::zero()) return real_start_;
    return real_start_ + Duration((passed.count() * million + parts_ - 1) / parts_);
  }

 private:
  static constexpr std::int64_t million = 1'000'000;
  Instant real_start_{};
  Instant shown_then_{};
  std::int64_t parts_ = million;  ///< microseconds that it shows in a second
};

}  // namespace muster::sim
