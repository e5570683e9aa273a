#include "muster/sampler.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include "support/scale.h"
#include "support/server.h"

// Shuffled orders of torch, as tests/runtime/torch_order.py prints them.

namespace muster::test {
namespace {

struct Order {
  std::uint64_t element_count;
  std::vector<std::uint64_t> first;
  std::uint64_t checksum;  ///< the sum of each element times its place from 1, of 64 bits
};

TEST_CASE("the shuffled order is torch's, on both sides of where it begins to draw 64 bits") {
  std::vector<Order> orders = {
      {1000, {615, 284, 599, 580, 347, 92, 383, 891}, 251546465U},
      {214748363,
       {112993252, 117420445, 128500308, 81485129, 164966415, 121216550, 100782295, 23987082},
       323332382940619888U},
      {214748364,
       {93268064, 63068233, 165770247, 155513421, 157420379, 198105859, 53976284, 200632439},
       7201235310225789487U},
  };
  // The long ones take 3 GB of memory: only where nothing is cut short.
  if (scaled(100) < 100) orders.resize(1);
  for (const Order& order : orders) {
    CAPTURE(order.element_count);
    SamplerOptions options;
    options.shuffle = true;
    options.seed = 7;
    const auto indices = must(DistributedSampler::create(order.element_count, options)).indices();
    REQUIRE(indices.size() == order.element_count);
    CHECK(std::equal(order.first.begin(), order.first.end(), indices.begin()));
    std::uint64_t checksum = 0;
    for (std::uint64_t i = 0; i < indices.size(); ++i) checksum += indices[i] * (i + 1);
    CHECK(checksum == order.checksum);
  }
}

}  // namespace
}  // namespace muster::test
