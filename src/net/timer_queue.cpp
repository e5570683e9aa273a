#include "net/timer_queue.h"

#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/monotonic_now.h"

namespace muster::net {

TimerQueue::TimerQueue() : clock_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  if (clock_.get() < 0) {
    throw std::system_error(errno, std::generic_category(), "timerfd_create");
  }
}

/// The first timer is due in the next turn, or when the timerfd is readable.
void TimerQueue::await() {
  is_due_ = !timers_.empty() && timers_.begin()->first <= earliest_;
  if (!is_due_) set();
}

/// Sets the timerfd to the first timer, or stops it if there is none.
void TimerQueue::set() {
  set_for_ = timers_.empty() ? base::far_future : timers_.begin()->first;
  itimerspec when{};
  if (set_for_ < base::far_future) {
    const auto since_boot = std::max(set_for_.time_since_epoch(), Duration(1));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
    when.it_value.tv_sec = seconds.count();
    when.it_value.tv_nsec = std::chrono::nanoseconds(since_boot - seconds).count();
  }
  ::timerfd_settime(clock_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void TimerQueue::run() {
  const base::Instant now = base::monotonic_now();
  earliest_ = now + base::Instant::duration(1);
  while (!timers_.empty() && timers_.begin()->first <= now) {
    Timer& timer = first();
    const auto work = std::exchange(timer.work_, nullptr);
    timer.cancel();
    work();
  }
  await();
}

}  // namespace muster::net
