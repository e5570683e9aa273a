#pragma once

#include <algorithm>
#include <cstdlib>

namespace muster::test {

/// `count` repetitions times MUSTER_TEST_SCALE (1 when unset), at least one.
inline int scaled(int count) {
  const char* scale = std::getenv("MUSTER_TEST_SCALE");
  return std::max(1, static_cast<int>(count * (scale != nullptr ? std::atof(scale) : 1.0)));
}

}  // namespace muster::test
