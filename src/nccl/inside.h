#pragma once

#include <atomic>

namespace muster::nccl_internal {

/// How many threads are inside functions of NCCL that may block; only an abort makes these return.
using InsideCount = std::atomic<int>;

/// While it lives, one more is.
class Inside {
 public:
  /// Null: nobody counts.
  explicit Inside(InsideCount* count) : count_(count) {
    if (count_ != nullptr) ++*count_;
  }
  ~Inside() {
    if (count_ != nullptr) --*count_;
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  InsideCount* const count_;
};

}  // namespace muster::nccl_internal
