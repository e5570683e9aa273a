#pragma once

#include <set>

#include "base/monotonic_now.h"
#include "base/time.h"

namespace muster::net {

/// Decides whether a loop polls for events instead of sleeping.
class BusyPolling {
 public:
  /// The loop polls for `period` after each event. Of several periods the longest counts.
  void begin(Duration period) { periods_.insert(period); }
  void end(Duration period) noexcept {
    const auto found = periods_.find(period);
    if (found != periods_.end()) periods_.erase(found);
  }

  /// Decides before a wait.
  ///
  /// had_event  in the last turn
  bool poll(bool had_event) {
    if (periods_.empty()) return false;
    const base::Instant now = base::monotonic_now();
    if (had_event) until_ = now + *periods_.rbegin();
    is_active_ = now < until_;
    return is_active_;
  }
  void pause() { is_active_ = false; }
  /// Whether the current turn polls.
  bool is_active() const { return is_active_; }

 private:
  std::multiset<Duration> periods_;
  base::Instant until_{};
  bool is_active_ = false;
};

}  // namespace muster::net
