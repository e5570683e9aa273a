#pragma once

#include <cstdint>

#include "base/time.h"
#include "core/memory/wheel.h"

namespace muster::core {

/// What a timer is for; the engine dispatches on it.
enum class TimerKind : std::uint8_t {
  session,  ///< owner: Session: silent for too long?
  parked,   ///< owner: Parked: its deadline
  key,      ///< owner: TableState: the next of its keys' TTLs
  objects,  ///< owner: Epoch: its objects' expiration, and what else it waits for
  round,    ///< owner: Round: log who is missing
  member,   ///< owner: Member: its process has no handle
  forming,  ///< owner: Group: a joiner that is disconnected
  drain,    ///< owner: Draining: its time is over
  offer,    ///< owner: Session: an item of a queue is kept for it no longer
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
  friend struct TimerLinks;
  TimerKind kind_;
  WheelPlace place_;
  void* owner_;
  Instant at_{};
  class TimerWheel* wheel_ = nullptr;
  Timer* previous_ = nullptr;
  Timer* next_ = nullptr;
};

/// How a wheel's timers are linked, see core/memory/wheel.h.
struct TimerLinks {
  using Ref = Timer*;
  static constexpr Ref none = nullptr;

  static Instant at(Ref timer) { return timer->at_; }
  static WheelPlace& place(Ref timer) { return timer->place_; }
  static Ref& previous(Ref timer) { return timer->previous_; }
  static Ref& next(Ref timer) { return timer->next_; }
};

/// The wheel of all timers that are objects of their own; for what it promises see
/// core/memory/wheel.h. Timers of the same tick fire in the order in which they were armed.
class TimerWheel {
 public:
  /// Arms, or moves, `timer`; at far_future it is disarmed.
  void arm(Timer& timer, Instant at);

  /// Disarms and returns one timer that is due at `now`. Null: there is none, or work is left.
  Timer* take_due(Instant now);

  Instant next_deadline() const { return wheel_.next_deadline(); }
  std::uint64_t armed_count() const { return wheel_.armed_count(); }

 private:
  friend class Timer;
  Wheel<TimerLinks> wheel_;
};

}  // namespace muster::core
