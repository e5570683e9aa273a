#include "muster/sampler.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include "support/scale.h"
#include "support/server.h"

// Shuffled orders that tests/runtime/torch_order.py printed with torch 2.15 (torch 2.6: the same).

namespace muster::test {
namespace {

struct Order {
  std::uint64_t element_count;
  std::uint64_t replica_count;
  std::vector<std::uint64_t> first;  ///< elements of rank 0
  std::uint64_t checksum;  ///< the sum of each of its elements times its place from 1, of 64 bits
};

TEST_CASE("the shuffled order is torch's, on both sides of where torch changes its shuffle") {
  std::vector<Order> orders = {
      {1000, 1, {615, 284, 599, 580, 347, 92, 383, 891}, 251546465U},
      {214748363,
       16,
       {112993252, 79194947, 57489824, 39206990, 96142031, 12211104, 130789116, 181515634},
       1848205536673120463U},
      {214748364,
       16,
       {93268064, 2189502, 25916319, 172206244, 99497554, 53214543, 6717126, 71599567},
       2839596002189765110U},
  };
  // The long ones take 1 GB of memory and some 10 s each, more with a sanitizer.
  if (scaled(100) < 20) orders.resize(1);
  for (const Order& order : orders) {
    CAPTURE(order.element_count);
    SamplerOptions options;
    options.replica_count = order.replica_count;
    options.shuffle = true;
    options.seed = 7;
    const auto indices = must(DistributedSampler::create(order.element_count, options)).indices();
    REQUIRE(indices.size() >= order.first.size());
    CHECK(std::equal(order.first.begin(), order.first.end(), indices.begin()));
    std::uint64_t checksum = 0;
    for (std::uint64_t i = 0; i < indices.size(); ++i) checksum += indices[i] * (i + 1);
    CHECK(checksum == order.checksum);
  }
}

}  // namespace
}  // namespace muster::test
