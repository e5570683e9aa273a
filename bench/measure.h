#pragma once

#include <cstddef>
#include <vector>

#include <nlohmann/json.hpp>

namespace muster::bench {

using Json = nlohmann::ordered_json;

/// The value at this share of the sorted samples; zero without any.
double quantile(std::vector<double>& samples, double share);

/// Calls `each` with every index below `count`, in every round; another one begins each time, so
/// that none has its turn always behind the same other.
template <class Each>
void take_turns(int rounds, std::size_t count, Each&& each) {
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < count; ++turn) {
      each((turn + static_cast<std::size_t>(round)) % count);
    }
  }
}

}  // namespace muster::bench
