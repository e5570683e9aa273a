#pragma once

#include <atomic>
#include <cstdint>

namespace muster::client {

/// Says which calls `cancel` meant: those with a serial below the mark. Calls take their serial
/// when they begin, so later ones are not concerned, and one that is between its first line and
/// its submission is. Lock-free: `cancel` may run in a signal handler.
class CancelMark {
 public:
  void raise_to(std::uint64_t serial) noexcept {
    std::uint64_t mark = below_.load();
    while (mark < serial && !below_.compare_exchange_weak(mark, serial)) {
    }
  }

  bool covers(std::uint64_t serial) const noexcept { return serial < below_.load(); }

  /// From now on what fails has failed because its owner closed it.
  void close() noexcept { is_closed_.store(true); }
  bool is_closed() const noexcept { return is_closed_.load(); }

 private:
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  std::atomic<std::uint64_t> below_{0};
  std::atomic<bool> is_closed_{false};
};

}  // namespace muster::client
