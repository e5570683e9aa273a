#pragma once

#include <algorithm>
#include <cstdlib>

namespace muster::test {

/// The scale of every run but those of `tools/dev deep` and of the sanitizers.
inline constexpr double default_scale = 0.2;

/// Returns `count` repetitions times MUSTER_TEST_SCALE, or `default_scale` if it is not set; at
/// least one.
template <class Count>
Count scaled(Count count) {
  const char* const scale = std::getenv("MUSTER_TEST_SCALE");
  const double factor = scale != nullptr ? std::atof(scale) : default_scale;
  return std::max<Count>(1, static_cast<Count>(static_cast<double>(count) * factor));
}

}  // namespace muster::test
