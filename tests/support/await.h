#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include <doctest/doctest.h>

#include "support/let_pass.h"

namespace muster::test {

/// Waits until `holds` does; false: it does not.
inline bool holds_soon(const std::function<bool()>& holds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

/// The same, for what a test cannot go on without.
inline void await(const std::function<bool()>& holds) { REQUIRE(holds_soon(holds)); }

}  // namespace muster::test
