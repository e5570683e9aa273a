#include <random>
#include <set>

#include <doctest/doctest.h>

#include "groups_chaos.h"

// The play of groups_chaos.h by seeds.

using namespace muster;
using namespace muster::test;

TEST_CASE("whatever clients do, every request is answered once and nothing is left in the end") {
  std::set<ErrorCode> told;
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    Chaos chaos([&random](std::size_t end) { return random() % end; });
    for (int step = 0; step < 400; ++step) chaos.step();
    chaos.finish();
    told.insert(chaos.told().begin(), chaos.told().end());
  }
  CHECK(told.size() >= 16);  // nearly all there are in groups: they do get somewhere
}
