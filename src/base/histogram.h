#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace muster::base {

/// How many durations fell into each of the ranges between bounds, and their sum. Plain data: it is
/// copied for who shows it.
///
/// bounds  ascending, above zero: a range ends with its bound, which is in it
template <const auto& bounds>
class Histogram {
 public:
  static constexpr std::size_t bounds_count = bounds.size();

  /// A dozen instructions.
  void add(Duration value) {
    const auto us = static_cast<std::uint64_t>(std::max(value, Duration::zero()).count());
    std::size_t range = first_ranges[static_cast<std::size_t>(std::bit_width(us))];
    while (us > ends[range]) ++range;
    ++counts_[range];
    sum_us_ += us;
  }

  /// Those above the bound before and not above this one; of the last, above all bounds.
  std::uint64_t count(std::size_t range) const { return counts_[range]; }
  std::uint64_t sum_us() const { return sum_us_; }

 private:
  /// In microseconds; behind the last bound one that nothing passes.
  static constexpr auto ends = [] {
    std::array<std::uint64_t, bounds_count + 1> all{};
    for (std::size_t index = 0; index < bounds_count; ++index) {
      all[index] = static_cast<std::uint64_t>(bounds[index].count());
    }
    all[bounds_count] = UINT64_MAX;
    return all;
  }();
  /// By the number of bits of a value: the range of the least value that has so many.
  static constexpr auto first_ranges = [] {
    std::array<std::uint8_t, 65> all{};
    for (std::size_t bits = 1; bits < all.size(); ++bits) {
      const std::uint64_t least = std::uint64_t{1} << (bits - 1);
      while (least > ends[all[bits]]) ++all[bits];
    }
    return all;
  }();

  std::array<std::uint64_t, bounds_count + 1> counts_{};
  std::uint64_t sum_us_ = 0;
};

}  // namespace muster::base
