#pragma once

#include <algorithm>

#include "base/time.h"

namespace muster::core {

using base::Instant;

/// The engine's time: that of its last event, without the gaps in which the process did not run.
class Clock {
 public:
  Instant now() const { return now_; }
  Instant start() const { return start_; }
  /// The sum of all gaps in which the process did not run.
  Duration paused() const { return paused_; }
  /// `paused()` was `paused_then` at `then`: how long ago that is, not counting the gaps since.
  Duration since(Instant then, Duration paused_then) const {
    return now_ - then - (paused_ - paused_then);
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
