#pragma once

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace muster::net {

/// The events that the last wait for an epoll set returned, and which of them are handled.
class ReadyEvents {
 public:
  void wait(int epoll, int timeout_ms) {
    const int count =
        ::epoll_wait(epoll, events_.data(), static_cast<int>(events_.size()), timeout_ms);
    next_ = 0;
    count_ = static_cast<std::size_t>(std::max(count, 0));
  }

  /// Whether the wait returned none.
  bool empty() const { return count_ == 0; }
  bool has_next() const { return next_ < count_; }
  epoll_event take_next() { return events_[next_++]; }
  /// Clears the pointer of all that are not handled and lead to `mark`.
  void forget(const void* mark) {
    for (std::size_t place = next_; place < count_; ++place) {
      if (events_[place].data.ptr == mark) events_[place].data.ptr = nullptr;
    }
  }

 private:
  /// An event may cost 50 us, as when a connection ends: a turn stays short however many come.
  static constexpr std::size_t events_per_turn = 64;

  std::array<epoll_event, events_per_turn> events_;
  std::size_t next_ = 0;
  std::size_t count_ = 0;
};

}  // namespace muster::net
