#pragma once

#include <algorithm>
#include <cstdint>

#include "muster/types.h"

namespace muster::client::protocol {

/// Doubling waits with jitter, from `min` to `max`. The same seed gives the same waits.
class Backoff {
 public:
  Backoff(Duration min, Duration max, std::uint64_t seed) : min_(min), max_(max), state_(seed) {}

  /// Between half of the step and the step, so that clients that failed together come back apart.
  Duration next() {
    step_ = std::min(max_, step_ == Duration::zero() ? 2 * min_ : 2 * step_);
    return between(std::max(min_, step_ / 2), step_);
  }

  /// The shortest wait.
  Duration least() { return between(min_, std::min(max_, 2 * min_)); }

  void reset() { step_ = Duration::zero(); }

 private:
  Duration between(Duration low, Duration high) {
    if (high <= low) return low;
    const auto span = static_cast<std::uint64_t>((high - low).count()) + 1;
    return low + Duration(static_cast<Duration::rep>(random() % span));
  }

  /// splitmix64
  std::uint64_t random() {
    std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }

  Duration min_;
  Duration max_;
  Duration step_{0};
  std::uint64_t state_;
};

}  // namespace muster::client::protocol
