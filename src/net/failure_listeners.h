#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <thread>
#include <utility>

namespace muster::net {

/// Runs what ends something after a failure; it needs a little memory, too, so when it throws it is
/// called again, for a second at most.
template <class End>
void insist(const End& end) noexcept {
  for (int attempt = 0; attempt < 100; ++attempt) {
    try {
      return end();
    } catch (...) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
}

/// The functions that are called when an exception reaches the loop.
class FailureListeners {
 public:
  using End = std::function<void(std::string_view why)>;

  /// returns  what `remove` takes
  std::uint64_t add(End end) {
    all_.emplace(++last_number_, std::move(end));
    return last_number_;
  }
  void remove(std::uint64_t number) { all_.erase(number); }
  void clear() { all_.clear(); }
  /// None of them removes one.
  void call(std::string_view why) const noexcept {
    for (const auto& [number, end] : all_) {
      insist([&run = end, why] { run(why); });
    }
  }

 private:
  std::map<std::uint64_t, End> all_;
  std::uint64_t last_number_ = 0;
};

}  // namespace muster::net
