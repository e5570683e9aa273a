#include "net/timer.h"

#include <algorithm>
#include <utility>

#include "base/monotonic_now.h"
#include "net/loop.h"

namespace muster::net {

void Timer::set(base::Instant when, std::function<void()> work) {
  cancel();
  when = std::max(when, loop_.timers().earliest());
  if (spare_) {
    spare_.key() = when;
    place_ = loop_.timers().timers().insert(std::move(spare_));
  } else {
    place_ = loop_.timers().timers().emplace(when, this);
  }
  is_set_ = true;
  work_ = std::move(work);
}

void Timer::set_after(Duration delay, std::function<void()> work) {
  set(base::deadline_after(base::monotonic_now(), delay), std::move(work));
}

void Timer::cancel() noexcept {
  if (!is_set_) return;
  is_set_ = false;
  spare_ = loop_.timers().timers().extract(place_);
  const auto ended = std::exchange(work_, nullptr);  // what it holds may end this timer
}

}  // namespace muster::net
