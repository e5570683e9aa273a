#pragma once

#include <cstdint>
#include <cstdlib>

namespace muster::sim {

/// How many times the usual number of seeds is run: MUSTER_SIM_RUNS, for long hunts.
inline std::uint64_t runs() {
  const char* const given = std::getenv("MUSTER_SIM_RUNS");
  const std::uint64_t count = given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
  return count > 0 ? count : 1;
}

}  // namespace muster::sim
