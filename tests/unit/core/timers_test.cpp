#include "core/session/timers.h"

#include <deque>
#include <random>
#include <vector>

#include <doctest/doctest.h>

using namespace muster;
using namespace muster::core;
using namespace std::chrono_literals;

namespace {

/// A timer and what the test knows of it.
struct Armed {
  int number = 0;
  bool armed = false;
  Instant at{};
  Timer timer{TimerKind::key, this};
};

Instant at(Duration since_start) { return Instant(since_start); }

std::vector<int> fired_by(TimerWheel& wheel, Instant now) {
  std::vector<int> numbers;
  while (wheel.next_deadline() <= now) {
    if (Timer* timer = wheel.take_due(now)) numbers.push_back(timer->owner<Armed>().number);
  }
  return numbers;
}

}  // namespace

TEST_CASE("a timer fires at its instant, not before") {
  TimerWheel wheel;
  Armed armed;
  wheel.arm(armed.timer, at(5ms));
  CHECK(wheel.next_deadline() == at(5ms));
  CHECK(wheel.take_due(at(4999us)) == nullptr);
  CHECK(wheel.take_due(at(5ms)) == &armed.timer);
  CHECK_FALSE(armed.timer.armed());
  CHECK(wheel.take_due(at(1h)) == nullptr);
  CHECK(wheel.next_deadline() == base::far_future);
}

TEST_CASE("a timer between two ticks fires at the next one") {
  TimerWheel wheel;
  Armed armed;
  wheel.arm(armed.timer, at(wheel_tick + 1us));
  CHECK(wheel.take_due(at(wheel_tick + 1us)) == nullptr);
  CHECK(wheel.next_deadline() == at(2 * wheel_tick));
  CHECK(wheel.take_due(at(2 * wheel_tick)) == &armed.timer);
}

TEST_CASE("a timer of the past fires at once") {
  TimerWheel wheel;
  Armed armed;
  CHECK(wheel.take_due(at(10s)) == nullptr);
  wheel.arm(armed.timer, at(1s));
  CHECK(wheel.next_deadline() <= at(10s));
  CHECK(wheel.take_due(at(10s)) == &armed.timer);
}

TEST_CASE("timers of one millisecond fire in the order in which they were armed") {
  TimerWheel wheel;
  std::deque<Armed> timers(20);
  for (int number = 0; number < 20; ++number) {
    timers[static_cast<std::size_t>(number)].number = number;
    wheel.arm(timers[static_cast<std::size_t>(number)].timer, at(3h + 7ms));
    if (number == 9) CHECK(wheel.take_due(at(3h)) == nullptr);  // the others start lower down
  }
  const std::vector<int> numbers = fired_by(wheel, at(4h));
  REQUIRE(numbers.size() == 20);
  for (int number = 0; number < 20; ++number)
    CHECK(numbers[static_cast<std::size_t>(number)] == number);
}

TEST_CASE("a moved timer fires at its new instant only") {
  TimerWheel wheel;
  Armed armed;
  wheel.arm(armed.timer, at(1s));
  wheel.arm(armed.timer, at(2s));
  CHECK(wheel.armed_count() == 1);
  CHECK(wheel.take_due(at(1500ms)) == nullptr);
  wheel.arm(armed.timer, at(1600ms));
  CHECK(wheel.take_due(at(1600ms)) == &armed.timer);
}

TEST_CASE("a timer that is destroyed, disarmed or armed at far_future does not fire") {
  TimerWheel wheel;
  Armed disarmed;
  Armed never;
  {
    Armed destroyed;
    wheel.arm(destroyed.timer, at(1s));
  }
  wheel.arm(disarmed.timer, at(1s));
  disarmed.timer.disarm();
  wheel.arm(never.timer, at(1s));
  wheel.arm(never.timer, base::far_future);
  CHECK(wheel.armed_count() == 0);
  CHECK(wheel.next_deadline() == base::far_future);
  CHECK(wheel.take_due(at(2s)) == nullptr);
}

TEST_CASE("instants of centuries away are kept exactly") {
  TimerWheel wheel;
  Armed armed;
  const Instant far = at(std::chrono::hours(24 * 365 * 200) + 1ms);
  wheel.arm(armed.timer, far);
  CHECK(fired_by(wheel, far - 1ms).empty());
  CHECK(wheel.take_due(far) == &armed.timer);
}

TEST_CASE("what fires is what a sorted list of instants says") {
  std::mt19937_64 random(7);
  TimerWheel wheel;
  std::deque<Armed> timers(300);
  Instant now = at(12345678us);
  int fired_count = 0;
  for (int step = 0; step < 200000; ++step) {
    Armed& one = timers[random() % timers.size()];
    switch (random() % 4) {
      case 0:
        one.timer.disarm();
        one.armed = false;
        break;
      case 1:
        // A step of time, now and then a long one.
        now += Duration(static_cast<std::int64_t>(random() >> (random() % 30 + 34)));
        break;
      default:
        one.at = now + Duration(static_cast<std::int64_t>(random() >> (random() % 44 + 20))) - 1ms;
        one.armed = true;
        wheel.arm(one.timer, one.at);
    }
    while (Timer* timer = wheel.take_due(now)) {
      Armed& fired = timer->owner<Armed>();
      REQUIRE(fired.armed);
      REQUIRE(fired.at <= now);
      fired.armed = false;
      ++fired_count;
    }
    if (step % 16 != 0) continue;
    Instant earliest = base::far_future;
    for (const Armed& armed : timers) {
      if (armed.armed) earliest = std::min(earliest, armed.at);
    }
    REQUIRE(earliest > now - 1ms);  // nobody was forgotten
    REQUIRE(wheel.next_deadline() > now);
    if (earliest != base::far_future) REQUIRE(wheel.next_deadline() < earliest + 1ms);
  }
  CHECK(fired_count > 10000);
}
