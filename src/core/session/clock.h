#pragma once

#include <algorithm>

#include "base/time.h"

namespace muster::core {

using base::Instant;

/// When something was, to be measured without the gaps since.
struct Moment {
  Instant at{};
  Duration paused{};  ///< the sum of all gaps until then
};

/// The engine's time: that of its last event, without the gaps in which the process did not run.
class Clock {
 public:
  Instant now() const { return now_; }
  Instant start() const { return start_; }
  /// The sum of all gaps in which the process did not run.
  Duration paused() const { return paused_; }
  Moment moment() const { return {now_, paused_}; }
  /// How long ago that is, not counting the gaps since.
  Duration since(const Moment& then) const { return now_ - after(then, Duration::zero()); }
  /// When so much time has passed since then, if no further gap comes.
  Instant after(const Moment& then, Duration duration) const {
    return then.at + duration + (paused_ - then.paused);
  }

  /// An event has come at `now`; an earlier time than the last counts as that.
  void observe(Instant now) {
    now_ = std::max(now, now_);
    if (!is_started_) start_ = now_;
    is_started_ = true;
  }
  /// Until now the process did not run for so long.
  void add_gap(Duration gap) { paused_ += gap; }

 private:
  bool is_started_ = false;
  Instant start_{};
  Instant now_{};
  Duration paused_{};
};

}  // namespace muster::core
