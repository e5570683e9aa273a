#pragma once

#include <chrono>
#include <functional>
#include <stdexcept>

#include "net/io_thread.h"
#include "net/loop.h"

namespace muster::test {

/// A loop that the test itself runs, step by step, until what it waits for has happened.
class TestLoop {
 public:
  net::Loop& loop() { return loop_; }

  /// Runs turns until `condition` holds, which is asked after each of them; throws when that takes
  /// longer than `timeout`.
  void run_until(const std::function<bool()>& condition,
                 std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= deadline) {
        throw std::runtime_error("it did not happen in time");
      }
      loop_.turn(std::chrono::milliseconds(5));
    }
  }

  /// Runs what can run at once.
  void run_ready() { loop_.turn(Duration::zero()); }

 private:
  net::Loop loop_;
};

}  // namespace muster::test
