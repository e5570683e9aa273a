#pragma once

#include <vector>

#include "muster/types.h"

namespace muster::base {

/// Adds a rank behind the others; ranks are added in ascending order.
template <class Rank>
void add_to(std::vector<RankRange>& ranges, Rank rank) {
  const int number = static_cast<int>(rank);
  if (!ranges.empty() && ranges.back().last == number - 1) {
    ranges.back().last = number;
  } else {
    ranges.push_back({number, number});
  }
}

}  // namespace muster::base
