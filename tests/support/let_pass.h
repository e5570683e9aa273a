#pragma once

#include <chrono>
#include <future>

namespace muster::test {

/// Lets time pass where time itself is what a test is about; never to wait for something.
inline void let_pass(std::chrono::nanoseconds time) {
  std::promise<void>().get_future().wait_for(time);
}

}  // namespace muster::test
