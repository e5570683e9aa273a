#pragma once

#include <algorithm>
#include <chrono>

#include "client/failure.h"
#include "muster/interruptible.h"
#include "muster/types.h"

namespace muster::client {

/// Whether a wait that a thread does by itself, in a loop, is to end: for waits that are on no call
/// of the store. All of it is inline, so that the libraries above have it.
///
/// threads  the one that waits
/// cost     nothing where the thread has no Interruptible; else a look at the clock
class Interruption {
 public:
  /// Asks once in a period.
  bool is_there() {
    if (interruptible_ == nullptr || is_there_) return is_there_;
    const auto now = std::chrono::steady_clock::now();
    if (now < asks_at_) return false;
    asks_at_ = now + interruptible_->period();
    is_there_ = interruptible_->is_interrupted();
    return is_there_;
  }

  /// A sleep that is not longer than a period.
  template <class Time>
  Time cut(Time sleep) const {
    if (interruptible_ == nullptr) return sleep;
    return std::min(sleep, std::chrono::duration_cast<Time>(interruptible_->period()));
  }

  static Error error() {
    return failure(ErrorCode::cancelled, "the thread that waited was interrupted");
  }

 private:
  const Interruptible* const interruptible_ = Interruptible::current();
  std::chrono::steady_clock::time_point asks_at_ =
      interruptible_ == nullptr ? std::chrono::steady_clock::time_point()
                                : std::chrono::steady_clock::now() + interruptible_->period();
  bool is_there_ = false;
};

}  // namespace muster::client
