#pragma once

#include <functional>
#include <map>

#include "base/time.h"

namespace muster::net {

class Loop;
class Timer;

using Timers = std::multimap<base::Instant, Timer*>;

/// Runs something once, later. On the I/O thread only.
class Timer {
 public:
  explicit Timer(Loop& loop) : loop_(loop) {}
  ~Timer() { cancel(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  /// Instead of what it was set for before. For the past, from the work of a timer, is for the next
  /// turn of the loop. What `work` throws passes through the loop.
  void set(base::Instant when, std::function<void()> work);
  void set_after(Duration delay, std::function<void()> work);

  /// Lets go of the work, unless it has begun.
  void cancel() noexcept;

 private:
  friend class TimerQueue;

  Loop& loop_;
  std::function<void()> work_;
  Timers::iterator place_{};  // valid while it is set
  Timers::node_type spare_;   // memory for the next time
  bool is_set_ = false;
};

}  // namespace muster::net
