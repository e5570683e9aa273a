#pragma once

#include "base/time.h"
#include "net/timer.h"
#include "net/unique_fd.h"

namespace muster::net {

/// The timers of a loop, and the timerfd that wakes it for the first one.
///
/// The timerfd is set only before a sleep, and only to an earlier time: most timers are moved on or
/// cancelled before they are due.
class TimerQueue {
 public:
  /// Throws std::system_error when the system has no descriptor left.
  TimerQueue();

  /// Readable when a timer may be due; then `note_due` is called.
  int descriptor() const { return clock_.get(); }
  void note_due() { is_due_ = true; }
  /// Whether `run` is to be called in this turn.
  bool is_due() const { return is_due_; }

  bool empty() const { return timers_.empty(); }
  Timer& first() { return *timers_.begin()->second; }
  Timers& timers() { return timers_; }
  /// The earliest time for which a timer may be set. It is after the timers that ran last, so a
  /// timer that is set by one of them waits for the next turn.
  base::Instant earliest() const { return earliest_; }

  /// Sets the timerfd, if the first timer is due before it would wake the loop.
  void prepare() {
    if (!timers_.empty() && timers_.begin()->first < set_for_) await();
  }
  /// Runs the timers that are due.
  void run();

 private:
  void await();
  void set();

  Timers timers_;
  base::Instant earliest_{};
  UniqueFd clock_;
  base::Instant set_for_ = base::far_future;
  bool is_due_ = false;
};

}  // namespace muster::net
