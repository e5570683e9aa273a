#include "core/timers.h"

#include <algorithm>
#include <bit>
#include <cassert>

// Instants are rounded up to milliseconds (ticks), written as nine digits of six bits. A timer
// stands on the level of the highest digit in which its tick differs from `tick_`, in the slot of
// that digit; so a level's slots before the current digit are empty, and everything on a level
// comes before everything on the levels above.
//
// Life of a timer: armed into a slot -> each time `tick_` reaches the start of its slot it moves
// to a lower level (at most eight times) -> on level 0, in the slot of `tick_`, it is due.
// Time jumps from occupied slot to occupied slot, found in the bitmaps; a slot may be refined in
// several calls, meanwhile it is the one at its level's current digit.

namespace muster::core {
namespace {

constexpr std::int64_t tick_us = 1000;

/// The first tick that is not before `at`.
std::int64_t tick_not_before(Instant at) {
  const std::int64_t us = std::max<std::int64_t>(at.time_since_epoch().count(), 0);
  return us / tick_us + (us % tick_us != 0 ? 1 : 0);
}

std::int64_t tick_at(Instant now) {
  return std::max<std::int64_t>(now.time_since_epoch().count(), 0) / tick_us;
}

}  // namespace

void Timer::disarm() {
  if (wheel_ != nullptr) wheel_->remove(*this);
}

TimerWheel::~TimerWheel() { assert(armed_count_ == 0); }

void TimerWheel::arm(Timer& timer, Instant at) {
  timer.disarm();
  timer.at_ = at;
  if (at == base::far_future) return;
  timer.wheel_ = this;
  ++armed_count_;
  insert(timer);
}

void TimerWheel::insert(Timer& timer) {
  const std::int64_t tick = std::max(tick_not_before(timer.at_), tick_);
  const auto differing = static_cast<std::uint64_t>(tick ^ tick_);
  const std::size_t level =
      differing == 0 ? 0 : (static_cast<std::size_t>(std::bit_width(differing)) - 1) / slot_bits;
  const std::size_t slot = digit(tick, level);
  timer.level_ = static_cast<std::uint8_t>(level);
  timer.slot_ = static_cast<std::uint8_t>(slot);

  // Circular, and entered at its end, so that a slot is served in the order of arming.
  Timer*& first = first_[level][slot];
  if (first == nullptr) {
    first = timer.previous_ = timer.next_ = &timer;
    occupied_[level] |= std::uint64_t{1} << slot;
    return;
  }
  timer.next_ = first;
  timer.previous_ = first->previous_;
  timer.previous_->next_ = &timer;
  first->previous_ = &timer;
}

void TimerWheel::remove(Timer& timer) {
  Timer*& first = first_[timer.level_][timer.slot_];
  if (timer.next_ == &timer) {
    first = nullptr;
    occupied_[timer.level_] &= ~(std::uint64_t{1} << timer.slot_);
  } else {
    timer.previous_->next_ = timer.next_;
    timer.next_->previous_ = timer.previous_;
    if (first == &timer) first = timer.next_;
  }
  timer.previous_ = timer.next_ = nullptr;
  timer.wheel_ = nullptr;
  --armed_count_;
}

/// The occupied slot that comes first in time. Slots at the current digit come before all others
/// (they are due, or half refined), the coarser ones first: what is in them may be due as well.
TimerWheel::Slot TimerWheel::next_slot() const {
  for (std::size_t level = level_count - 1; level > 0; --level) {
    const std::size_t current = digit(tick_, level);
    if ((occupied_[level] >> current & 1) != 0) return {level, current};
  }
  for (std::size_t level = 0; level < level_count; ++level) {
    if (occupied_[level] == 0) continue;
    return {level, static_cast<std::size_t>(std::countr_zero(occupied_[level]))};
  }
  return {level_count, 0};
}

std::int64_t TimerWheel::start_of(Slot slot) const {
  const std::size_t shift = slot.level * slot_bits;
  const std::int64_t above = tick_ >> (shift + slot_bits) << (shift + slot_bits);
  return std::max(above | static_cast<std::int64_t>(slot.index) << shift, tick_);
}

Timer* TimerWheel::take_due(Instant now) {
  const std::int64_t now_tick = tick_at(now);
  for (int moves = 0; moves < moves_per_call_max;) {
    const Slot slot = next_slot();
    if (slot.level == level_count || start_of(slot) > now_tick) {
      tick_ = std::max(tick_, now_tick);
      return nullptr;
    }
    tick_ = start_of(slot);
    Timer& timer = *first_[slot.level][slot.index];
    if (slot.level == 0) {
      remove(timer);
      return &timer;
    }
    for (; moves < moves_per_call_max && first_[slot.level][slot.index] != nullptr; ++moves) {
      Timer& coarse = *first_[slot.level][slot.index];
      remove(coarse);
      arm(coarse, coarse.at_);
    }
  }
  return nullptr;
}

Instant TimerWheel::next_deadline() const {
  const Slot slot = next_slot();
  if (slot.level == level_count) return base::far_future;
  const std::int64_t start = start_of(slot);
  if (start > Instant::max().time_since_epoch().count() / tick_us) return base::far_future;
  return Instant(Duration(start * tick_us));
}

}  // namespace muster::core
