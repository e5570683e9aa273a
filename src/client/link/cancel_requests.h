#pragma once

#include <atomic>
#include <cstdint>

#include "client/cancel_mark.h"

namespace muster::client {

/// Which of a link's calls somebody wants to end, until the I/O thread has seen to it. Lock-free:
/// `cancel` may run in a signal handler.
class CancelRequests {
 public:
  /// Of a call that begins.
  std::uint64_t next_serial() { return last_serial_.fetch_add(1) + 1; }

  /// Means the calls that have begun, all or those of one owner.
  void request_all() noexcept { request(all_); }
  void request(CancelMark& mark) noexcept {
    mark.raise_to(last_serial_.load() + 1);
    is_pending_.store(true);
  }

  /// Whether one is meant by what was requested; `own` is its owner's mark, or null.
  bool covers(std::uint64_t serial, const CancelMark* own) const noexcept {
    return all_.covers(serial) || (own != nullptr && own->covers(serial));
  }

  /// There is a call to end.
  void note_pending() noexcept { is_pending_.store(true); }
  bool is_pending() const noexcept { return is_pending_.load(); }
  bool take() noexcept { return is_pending_.exchange(false); }

 private:
  std::atomic<std::uint64_t> last_serial_{0};
  CancelMark all_;
  std::atomic<bool> is_pending_{false};
};

}  // namespace muster::client
