#pragma once

#include <array>
#include <cstdint>

#include "base/time.h"

namespace muster::core {

using base::Instant;

/// What a timer is for; the engine dispatches on it.
enum class TimerKind : std::uint8_t {
  session,  ///< owner: Session: silent for too long?
  parked,   ///< owner: Parked: its deadline
  key,      ///< owner: the table's entry: its TTL
  objects,  ///< owner: Epoch: its oldest payload's expiration
  round,    ///< owner: Round: log who is missing
};

/// One armed deadline, a member of what it belongs to. Disarms itself when destroyed.
class Timer {
 public:
  Timer(TimerKind kind, void* owner) : kind_(kind), owner_(owner) {}
  ~Timer();
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
  void* owner_;
  Instant at_{};
  class TimerWheel* wheel_ = nullptr;
  Timer* previous_ = nullptr;
  Timer* next_ = nullptr;
  std::uint16_t slot_ = 0;
};

/// A hierarchical wheel of 1 ms: arming, disarming and firing cost O(1), whatever is armed.
/// A timer never fires before its instant, and at most 1 ms after it when asked in time.
class TimerWheel {
 public:
  explicit TimerWheel(Instant start);

  /// Arms, or moves, `timer`.
  void arm(Timer& timer, Instant at);

  /// Disarms and returns one timer that is due at `now`; null when there is none. Called until
  /// then; bounded by what is due.
  Timer* take_due(Instant now);

  /// Never later than the earliest armed instant, and never before `take_due` has work to do
  /// or slots to cascade; far_future when nothing is armed.
  Instant next_deadline() const;

  std::uint64_t armed_count() const { return armed_count_; }

 private:
  friend class Timer;
  void insert(Timer& timer);
  void remove(Timer& timer);

  static constexpr int slot_bits = 6;
  static constexpr int slot_count = 1 << slot_bits;
  static constexpr int level_count = 6;  // 2^36 ms: two years

  std::array<std::array<Timer*, slot_count>, level_count> slots_{};
  std::array<std::uint64_t, level_count> occupied_{};
  std::int64_t tick_ = 0;  // the last millisecond that was looked at
  std::uint64_t armed_count_ = 0;
};

}  // namespace muster::core
