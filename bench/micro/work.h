#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace muster::bench {

/// One thing that the server does, without sockets and threads.
struct Work {
  std::string name;
  /// Prepares the state, with so many keys or timers, and returns what does the thing `units`
  /// times.
  std::function<std::function<void()>(std::size_t many)> prepare;
  int units = 1;
};

/// wire/...: bytes to structs and back.
std::vector<Work> wire_work();
/// frames/...: what a connection has read, cut into frames.
std::vector<Work> frame_work();
/// core/...: requests through the engine, among many keys.
std::vector<Work> key_work();
/// core/...: the same by the ranks of a group, each one's share.
std::vector<Work> group_work();
/// objects/...: values of an application to bytes and back.
std::vector<Work> object_work();
/// timers/...: the wheel, among many timers.
std::vector<Work> timer_work();

/// All of them. A name stays what it is: the baseline knows it.
const std::vector<Work>& all_work();

/// Keeps the compiler from leaving the work out.
template <class Value>
void use(Value& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

/// Work on a state, which is made when it is prepared.
template <class State, class Do>
auto with(Do what) {
  return [what](std::size_t many) -> std::function<void()> {
    auto state = std::make_shared<State>(many);
    return [state, what] { what(*state); };
  };
}

}  // namespace muster::bench
