#include "fuzz.h"
#include "unit/core/groups_chaos.h"

// The play of groups_chaos.h, whose rules are nearly kept, by the fuzzer's choices.

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  muster::fuzz::Input input(data, size);
  muster::test::Chaos chaos([&input](std::size_t end) { return input.below(end); });
  while (!input.is_over()) chaos.step();
  chaos.finish();
  return 0;
}
