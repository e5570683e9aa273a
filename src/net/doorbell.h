#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>

namespace muster::net {

/// Wakes what lives on a loop from where nothing else may be called: a signal handler. Each ring
/// wakes every listener.
class Doorbell {
 public:
  /// wake_fd  a write there wakes the loop
  explicit Doorbell(int wake_fd) : wake_fd_(wake_fd) {}
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  /// Async-signal-safe, any thread.
  void ring() noexcept;

  // On the I/O thread only.

  std::uint64_t add(std::function<void()> listener);
  void remove(std::uint64_t number) { listeners_.erase(number); }

  bool has_rung() const { return has_rung_.load(); }
  void answer();

 private:
  const int wake_fd_;
  std::atomic<bool> has_rung_{false};
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, std::function<void()>> listeners_;
};

}  // namespace muster::net
