#pragma once

#include <algorithm>
#include <cstdlib>

namespace muster::test {

/// `count` repetitions times MUSTER_TEST_SCALE (1 when unset; more for long hunts), at least one.
template <class Count>
Count scaled(Count count) {
  const char* const scale = std::getenv("MUSTER_TEST_SCALE");
  const double factor = scale != nullptr ? std::atof(scale) : 1.0;
  return std::max<Count>(1, static_cast<Count>(static_cast<double>(count) * factor));
}

}  // namespace muster::test
