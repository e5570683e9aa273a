#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "wire/request.h"

namespace muster::client {

/// Which callers look for their answers before they sleep: only so many at a time, and only of
/// requests whose last answers came that soon. A barrier waits for other ranks, a request to
/// another host for the network; a caller that looked all the same would waste a processor that
/// those need.
class Spinners {
 public:
  explicit Spinners(int max) : max_(max) {
    for (auto& left : tries_left_) left = tries_of_the_lucky;
  }

  /// Whether the caller of such a request may look. Then `end` follows.
  ///
  /// request  the index of its alternative in wire::RequestBody
  bool begin(std::size_t request) {
    if (!may_try(tries_left_[request])) return false;
    if (count_.fetch_add(1, std::memory_order_relaxed) < max_) return true;
    count_.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }

  /// is_answered  while it looked
  void end(std::size_t request, bool is_answered) {
    count_.fetch_sub(1, std::memory_order_relaxed);
    std::atomic<std::int32_t>& left = tries_left_[request];
    const std::int32_t less = left.load(std::memory_order_relaxed) - 1;
    const std::int32_t after_miss = less > 0 ? less : -calls_of_a_pause;
    left.store(is_answered ? tries_of_the_lucky : after_miss, std::memory_order_relaxed);
  }

 private:
  // So many callers in a row may look in vain; then none does for some calls, and then a few try.
  static constexpr std::int32_t tries_of_the_lucky = 16;
  static constexpr std::int32_t calls_of_a_pause = 32;
  static constexpr std::int32_t tries_after_a_pause = 4;

  static bool may_try(std::atomic<std::int32_t>& left) {
    const std::int32_t now = left.load(std::memory_order_relaxed);
    if (now > 0) return true;
    left.store(now < -1 ? now + 1 : tries_after_a_pause, std::memory_order_relaxed);
    return false;
  }

  const int max_;
  std::atomic<int> count_{0};
  /// Of each request; negative: calls of the pause. Threads may overwrite each other's: it is an
  /// estimate.
  std::array<std::atomic<std::int32_t>, std::variant_size_v<wire::RequestBody>> tries_left_{};
};

}  // namespace muster::client
