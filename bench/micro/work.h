#pragma once

#include <functional>
#include <string>
#include <vector>

namespace muster::bench {

/// One thing that the server does, without sockets and threads.
struct Work {
  std::string name;
  /// Prepares the state, and returns what does the thing once.
  std::function<std::function<void()>()> prepare;
};

/// wire/...: bytes to structs and back; core/...: a request through the engine, among 100,000 keys;
/// timers/...: the wheel, among 100,000 timers.
const std::vector<Work>& all_work();

}  // namespace muster::bench
