#include "core/memory/wheel.h"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "support/scale.h"

// What a wheel promises of its work; what it fires, and in which order, is in timers_test.cpp.

using namespace muster;
using namespace muster::core;
using namespace std::chrono_literals;

namespace {

struct Node {
  Instant at{};
  WheelPlace place;
  std::uint32_t previous = 0;
  std::uint32_t next = 0;
};

/// Nodes in a vector, and how often one is put somewhere or taken from there.
struct CountingLinks {
  using Ref = std::uint32_t;
  static constexpr Ref none = UINT32_MAX;

  Instant at(Ref node) const { return (*nodes)[node].at; }
  WheelPlace& place(Ref node) const {
    ++*steps;
    return (*nodes)[node].place;
  }
  Ref& previous(Ref node) const { return (*nodes)[node].previous; }
  Ref& next(Ref node) const { return (*nodes)[node].next; }

  std::vector<Node>* nodes;
  int* steps;
};

/// A wheel, and a rim that looks at it whenever it wants to be looked at.
class Driven {
 public:
  explicit Driven(std::size_t count) : nodes(count), armed(count) {}
  ~Driven() {
    for (std::uint32_t node = 0; node < nodes.size(); ++node) {
      if (armed[node]) wheel.remove(node);
    }
  }

  void arm(std::uint32_t node, Instant at) {
    nodes[node].at = at;
    wheel.add(node);
    armed[node] = true;
  }

  /// Until `end`. What fires does so in time.
  void run(Instant end) {
    for (Instant now = wheel.next_deadline(); now <= end; now = wheel.next_deadline()) {
      for (;;) {
        steps = 0;
        const std::uint32_t node = wheel.take_due(now);
        steps_max = std::max(steps_max, steps);
        if (node == CountingLinks::none) break;
        REQUIRE(nodes[node].at <= now);
        late_max = std::max(late_max, now - nodes[node].at);
        armed[node] = false;
        ++fired_count;
      }
      REQUIRE(wheel.next_deadline() > now);  // a slot is never so full that work is left
    }
  }

  std::vector<Node> nodes;
  std::vector<bool> armed;
  int steps = 0;
  int steps_max = 0;
  Duration late_max{};
  std::size_t fired_count = 0;
  Wheel<CountingLinks> wheel{CountingLinks{&nodes, &steps}};
};

}  // namespace

TEST_CASE("many timers that are spread over ten seconds are refined ahead, some at a time") {
  const auto most = std::min(1'000'000, test::scaled(20'000'000));  // fewer with a sanitizer
  for (const std::size_t count : {std::size_t{100'000}, static_cast<std::size_t>(most)}) {
    for (const Duration ahead : {Duration(10s), Duration(1h)}) {
      CAPTURE(count);
      CAPTURE(ahead.count());
      std::mt19937_64 random(count);
      Driven driven(count);
      for (std::uint32_t node = 0; node < count; ++node) {
        driven.arm(node, Instant(ahead + Duration(random() % 10'000'000)));
      }
      driven.run(Instant(ahead + 11s));
      CHECK(driven.fired_count == count);
      CHECK(driven.late_max < wheel_tick);
      // Taken and put: two steps for each that is moved, and what fires.
      CHECK(driven.steps_max <= 2 * Wheel<CountingLinks>::moves_ahead_per_call_max + 2);
    }
  }
}

TEST_CASE("a slot that is too full to be refined ahead is refined in bounded calls as it begins") {
  constexpr std::size_t count = 100'000;
  Driven driven(count);
  for (std::uint32_t node = 0; node < count; ++node) driven.arm(node, Instant(1h));
  const Instant now(1h - wheel_tick);  // nobody has looked until then
  int calls = 0;
  for (; driven.wheel.next_deadline() <= now; ++calls) {
    driven.steps = 0;
    REQUIRE(driven.wheel.take_due(now) == CountingLinks::none);
    REQUIRE(driven.steps <= 2 * Wheel<CountingLinks>::moves_per_call_max);
    REQUIRE(calls < 2000);
  }
  CHECK(calls >= static_cast<int>(count) / Wheel<CountingLinks>::moves_per_call_max);
  CHECK(driven.wheel.next_deadline() == Instant(1h));
}

TEST_CASE("an instant that is moved to a later one fires at that") {
  std::mt19937_64 random(11);
  constexpr std::size_t count = 200;
  Driven driven(count);
  Instant now(1000s);
  for (int round = 0; round < 20000; ++round) {
    const auto node = static_cast<std::uint32_t>(random() % count);
    const Duration more(static_cast<std::int64_t>(random() >> (random() % 30 + 34)));
    if (!driven.armed[node]) {
      driven.arm(node, now + more);
    } else if (random() % 4 != 0) {
      driven.nodes[node].at += more;
    } else {
      driven.wheel.remove(node);
      driven.armed[node] = false;
    }
    if (random() % 4 == 0) {
      now += more;
      driven.run(now);
    }
    if (now < driven.wheel.next_deadline()) driven.wheel.skip_to(now);
  }
  CHECK(driven.late_max < wheel_tick);
  CHECK(driven.fired_count > 1000);
}

TEST_CASE("what is armed says when there is work with it") {
  Driven driven(2);
  driven.wheel.skip_to(Instant(1h));
  driven.nodes[0].at = Instant(1h + 10s);
  const Instant due = driven.wheel.add(0);
  driven.armed[0] = true;
  CHECK(due == driven.wheel.next_deadline());
  CHECK(due > Instant(1h));
  CHECK(due <= Instant(1h + 10s));
  driven.nodes[1].at = Instant(1h + wheel_tick + 1us);
  CHECK(driven.wheel.add(1) == Instant(1h + 2 * wheel_tick));
  driven.armed[1] = true;
  CHECK(driven.wheel.next_deadline() == Instant(1h + 2 * wheel_tick));
  CHECK(driven.wheel.armed_count() == 2);
}
