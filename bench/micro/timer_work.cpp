#include <algorithm>
#include <chrono>
#include <deque>

#include "core/session/timers.h"
#include "work.h"

namespace muster::bench {
namespace {

using namespace std::chrono_literals;

/// A wheel with many timers, each of which is armed for another time of the next minute.
class Armed {
 public:
  explicit Armed(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      timers_.emplace_back(core::TimerKind::key, nullptr);
      arm_next();
    }
  }
  ~Armed() { timers_.clear(); }
  Armed(const Armed&) = delete;
  Armed& operator=(const Armed&) = delete;

  void arm_next() { arm(timers_[next_ % timers_.size()]); }
  void arm_and_disarm() {
    arm(spare_);
    spare_.disarm();
  }
  /// Lets the next one fire, and arms it anew.
  void fire_next() {
    for (;;) {
      if (core::Timer* const due = wheel_.take_due(now_)) {
        wheel_.arm(*due, now_ + 60s);
        return;
      }
      now_ = std::max(now_, wheel_.next_deadline());
    }
  }

 private:
  void arm(core::Timer& timer) {
    ++next_;
    wheel_.arm(timer, now_ + std::chrono::microseconds(1 + (next_ * 7919'000) % 60'000'000));
  }

  core::TimerWheel wheel_;
  core::Instant now_{1s};
  std::deque<core::Timer> timers_;
  core::Timer spare_{core::TimerKind::key, nullptr};
  std::size_t next_ = 0;
};

}  // namespace

std::vector<Work> timer_work() {
  return {{"timers/arm and disarm", with<Armed>([](Armed& armed) { armed.arm_and_disarm(); })},
          {"timers/arm one that is armed", with<Armed>([](Armed& armed) { armed.arm_next(); })},
          {"timers/fire and arm anew", with<Armed>([](Armed& armed) { armed.fire_next(); })}};
}

}  // namespace muster::bench
