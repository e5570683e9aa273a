#include "failures/shard.h"

#include <cstdlib>
#include <string>

#include "support/scale.h"

namespace muster::test {

std::vector<std::uint64_t> of_this_shard(std::uint64_t count) {
  std::uint64_t part = 0;
  std::uint64_t parts = 1;
  if (const char* const text = std::getenv("MUSTER_TEST_SHARD")) {
    char* end = nullptr;
    part = std::strtoull(text, &end, 10);
    parts = std::strtoull(end + 1, nullptr, 10);
  }
  const std::uint64_t tried_count = std::min(scaled((count + 19) / 20), count);
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t index = part; index < tried_count; index += parts) {
    numbers.push_back(1 + index * count / tried_count);
  }
  return numbers;
}

}  // namespace muster::test
