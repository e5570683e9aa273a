#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>

#include "net/io_thread.h"
#include "net/loop.h"

namespace muster::test {

/// An io_context that the test itself runs, step by step, until what it waits for has happened.
class TestLoop {
 public:
  asio::io_context& context() { return context_; }

  /// Runs handlers until `condition` holds, which is asked after each of them; throws when that
  /// takes longer than `timeout`.
  void run_until(const std::function<bool()>& condition,
                 std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= deadline) {
        throw std::runtime_error("it did not happen in time");
      }
      context_.restart();
      context_.run_one_for(std::chrono::milliseconds(5));
    }
  }

  /// Runs what can run at once.
  void run_ready() {
    context_.restart();
    context_.poll();
  }

 private:
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
};

}  // namespace muster::test
