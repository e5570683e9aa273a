#include "core/session/timers.h"

namespace muster::core {

void Timer::disarm() {
  if (wheel_ == nullptr) return;
  wheel_->wheel_.remove(this);
  wheel_ = nullptr;
}

void TimerWheel::arm(Timer& timer, Instant at) {
  timer.disarm();
  timer.at_ = at;
  if (at == base::far_future) return;
  timer.wheel_ = this;
  wheel_.add(&timer);
}

Timer* TimerWheel::take_due(Instant now) {
  Timer* const timer = wheel_.take_due(now);
  if (timer != nullptr) timer->wheel_ = nullptr;
  return timer;
}

}  // namespace muster::core
