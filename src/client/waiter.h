#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/futex.h"
#include "base/time.h"

namespace muster::client {

using base::Instant;

/// Where one thread waits for what another one gives it, once. `give` touches nothing of it after
/// the one who waits can know, so that it may lie on that one's stack.
template <class T>
class Waiter {
 public:
  Waiter() = default;
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  void give(T value) {
    value_.emplace(std::move(value));
    if (state_.exchange(State::given) == State::asleep) base::futex_wake_one(&state_);
  }

  bool is_given() const { return state_.load(std::memory_order_acquire) == State::given; }

  /// returns  whether it was given
  bool wait_until(Instant deadline) {
    std::uint32_t state = State::empty;
    state_.compare_exchange_strong(state, State::asleep);
    bool is_in_time = true;
    while (!is_given()) {
      if (!is_in_time) return false;
      is_in_time = base::futex_wait(state_, State::asleep, deadline);
    }
    return true;
  }

  T take() {
    wait_until(base::far_future);
    return *std::move(value_);
  }

 private:
  struct State {
    static constexpr std::uint32_t empty = 0;
    static constexpr std::uint32_t asleep = 1;
    static constexpr std::uint32_t given = 2;
  };

  std::atomic<std::uint32_t> state_{State::empty};
  std::optional<T> value_;
};

}  // namespace muster::client
