#include "server/metrics/publisher.h"

#include <atomic>
#include <memory>
#include <thread>

#include <doctest/doctest.h>

namespace {

using namespace std::chrono_literals;
using muster::base::Instant;
using Numbers = muster::server::Publisher<int>;

std::shared_ptr<const int> number(int value) { return std::make_shared<const int>(value); }

TEST_CASE("nothing is due before somebody asks, and not twice in half a second") {
  Numbers numbers;
  const Instant start{1000s};
  CHECK_FALSE(numbers.is_due(start));
  CHECK(numbers.latest() == nullptr);
  CHECK(numbers.is_due(start));
  numbers.publish(number(1), start);
  CHECK(*numbers.latest() == 1);
  CHECK_FALSE(numbers.is_due(start + 499ms));
  CHECK(numbers.is_due(start + 500ms));
  numbers.publish(number(2), start + 500ms);
  CHECK(*numbers.latest() == 2);
}

TEST_CASE("who has asked is taken to ask again for a minute") {
  Numbers numbers;
  const Instant start{1000s};
  static_cast<void>(numbers.latest());
  numbers.publish(number(1), start);
  CHECK(numbers.is_due(start + 59s));
  numbers.publish(number(2), start + 59s);  // nobody has asked since
  CHECK_FALSE(numbers.is_due(start + 60s));
  static_cast<void>(numbers.latest());
  CHECK(numbers.is_due(start + 60s));
}

TEST_CASE("nothing is there when it is closed, and nobody waits") {
  Numbers numbers;
  numbers.publish(number(1), muster::base::monotonic_now());
  numbers.close();
  CHECK(numbers.latest() == nullptr);
  CHECK(numbers.latest(10s) == nullptr);
}

TEST_CASE("who has what was published keeps it") {
  Numbers numbers;
  numbers.publish(number(1), Instant{1000s});
  const auto kept = numbers.latest();
  numbers.publish(number(2), Instant{1001s});
  CHECK(*kept == 1);
  CHECK(*numbers.latest() == 2);
}

TEST_CASE("who asks wakes the thread that serves once until something is published") {
  int woken = 0;
  Numbers numbers([&woken] { ++woken; });
  static_cast<void>(numbers.latest());
  static_cast<void>(numbers.latest());
  CHECK(woken == 1);
  numbers.publish(number(1), Instant{1000s});
  static_cast<void>(numbers.latest());
  CHECK(woken == 2);
}

TEST_CASE("who waits gets what is published after that, and what is there if nothing is") {
  std::atomic<bool> is_asked = false;
  Numbers numbers([&is_asked] { is_asked.store(true); });
  CHECK(numbers.latest(1ms) == nullptr);
  numbers.publish(number(1), Instant{1s});  // long ago
  CHECK(*numbers.latest(1ms) == 1);
  is_asked.store(false);
  numbers.publish(number(2), Instant{2s});
  std::atomic<bool> is_over = false;
  std::thread serving([&] {
    while (!is_asked.load() && !is_over.load()) std::this_thread::yield();
    numbers.publish(number(3), muster::base::monotonic_now());
  });
  CHECK(*numbers.latest(10s) == 3);
  is_over.store(true);
  serving.join();
  CHECK(*numbers.latest(10s) == 3);  // it is new
}

}  // namespace
