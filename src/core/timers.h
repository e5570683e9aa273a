#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace muster::core {

using base::Instant;

/// What a timer is for; the engine dispatches on it.
enum class TimerKind : std::uint8_t {
  session,  ///< owner: Session: silent for too long?
  parked,   ///< owner: Parked: its deadline
  key,      ///< owner: Lease: its key's TTL
  objects,  ///< owner: Epoch: its objects' expiration, and what else it waits for
  round,    ///< owner: Round: log who is missing
};

/// One armed deadline, a member of what it belongs to. Disarms itself when destroyed.
class Timer {
 public:
  Timer(TimerKind kind, void* owner) : kind_(kind), owner_(owner) {}
  ~Timer() { disarm(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  TimerKind kind() const { return kind_; }
  template <class Owner>
  Owner& owner() const {
    return *static_cast<Owner*>(owner_);
  }
  Instant at() const { return at_; }
  bool armed() const { return wheel_ != nullptr; }
  void disarm();

 private:
  friend class TimerWheel;
  TimerKind kind_;
  std::uint8_t level_ = 0;
  std::uint8_t slot_ = 0;
  void* owner_;
  Instant at_{};
  class TimerWheel* wheel_ = nullptr;
  Timer* previous_ = nullptr;
  Timer* next_ = nullptr;
};

/// A hierarchical wheel of 1 ms: arming, disarming and firing cost O(1), whatever is armed.
/// A timer never fires before its instant, and less than 1 ms after it when asked in time.
/// Timers of the same millisecond fire in the order in which they were armed.
class TimerWheel {
 public:
  TimerWheel() = default;
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;
  ~TimerWheel();

  /// Arms, or moves, `timer`; at far_future it is disarmed.
  void arm(Timer& timer, Instant at);

  /// Disarms and returns one timer that is due at `now`; null when there is none, or when
  /// `moves_per_call_max` timers were moved to finer slots and work is left: then
  /// `next_deadline() <= now`.
  Timer* take_due(Instant now);

  /// When `take_due` has work again: a timer that is due (less than 1 ms after its instant), or
  /// slots to refine. far_future when nothing is armed.
  Instant next_deadline() const;

  std::uint64_t armed_count() const { return armed_count_; }

  static constexpr int moves_per_call_max = 1024;

 private:
  friend class Timer;
  struct Slot {
    std::size_t level;
    std::size_t index;
  };
  void insert(Timer& timer);
  void remove(Timer& timer);
  static std::size_t digit(std::int64_t tick, std::size_t level) {
    return static_cast<std::size_t>(tick >> (level * slot_bits)) & (slot_count - 1);
  }
  Slot next_slot() const;
  std::int64_t start_of(Slot slot) const;

  static constexpr std::size_t slot_bits = 6;
  static constexpr std::size_t slot_count = std::size_t{1} << slot_bits;
  static constexpr std::size_t level_count = 9;  // 2^54 ms: every instant there is

  std::array<std::array<Timer*, slot_count>, level_count> first_{};
  std::array<std::uint64_t, level_count> occupied_{};  // one bit per slot
  std::int64_t tick_ = 0;                              // the last millisecond that was looked at
  std::uint64_t armed_count_ = 0;
};

}  // namespace muster::core
