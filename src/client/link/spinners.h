#pragma once

#include <atomic>

namespace muster::client {

/// How many callers may look for their answers before they sleep.
class Spinners {
 public:
  explicit Spinners(int max) : max_(max) {}

  /// Whether one more may, until `end`.
  bool begin() {
    if (count_.fetch_add(1, std::memory_order_relaxed) < max_) return true;
    end();
    return false;
  }
  void end() { count_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  const int max_;
  std::atomic<int> count_{0};
};

}  // namespace muster::client
