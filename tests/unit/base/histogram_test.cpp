#include "base/histogram.h"

#include <doctest/doctest.h>

namespace muster::base {
namespace {

using std::chrono::microseconds;

constexpr auto few_bounds = std::to_array<Duration>({
    microseconds(1),
    microseconds(5),
    microseconds(6),
    microseconds(100),
    std::chrono::hours(1),
});
using Few = Histogram<few_bounds>;

/// Where one that took so long is counted.
std::size_t range_of(Duration value) {
  Few few;
  few.add(value);
  std::size_t range = 0;
  while (few.count(range) == 0) ++range;
  return range;
}

TEST_CASE("a bound ends its range and is in it") {
  CHECK(range_of(microseconds(0)) == 0);
  CHECK(range_of(microseconds(1)) == 0);
  CHECK(range_of(microseconds(2)) == 1);
  CHECK(range_of(microseconds(5)) == 1);
  CHECK(range_of(microseconds(6)) == 2);
  CHECK(range_of(microseconds(7)) == 3);
  CHECK(range_of(microseconds(100)) == 3);
  CHECK(range_of(microseconds(101)) == 4);
  CHECK(range_of(std::chrono::hours(1)) == 4);
  CHECK(range_of(std::chrono::hours(1) + microseconds(1)) == 5);
  CHECK(range_of(Duration::max()) == 5);
}

TEST_CASE("a clock that went back counts as no time") {
  Few few;
  few.add(microseconds(-7));
  CHECK(few.count(0) == 1);
  CHECK(few.sum_us() == 0);
}

TEST_CASE("every duration is counted once, and the sum is theirs") {
  Few few;
  std::uint64_t sum_us = 0;
  for (std::uint64_t us = 0; us < 1000; ++us) {
    few.add(microseconds(us));
    sum_us += us;
  }
  CHECK(few.sum_us() == sum_us);
  CHECK(few.count(0) == 2);
  CHECK(few.count(1) == 4);
  CHECK(few.count(2) == 1);
  CHECK(few.count(3) == 94);
  CHECK(few.count(4) == 899);
  CHECK(few.count(5) == 0);
}

}  // namespace
}  // namespace muster::base
