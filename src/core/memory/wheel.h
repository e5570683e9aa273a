#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "base/time.h"

// Instants are rounded up to ticks. Level n of the wheel has 64 slots of 32^n ticks each, a ring
// that begins at the present: so the slots of a level reach twice as far as one slot of the level
// above. A timer stands on the finest level that reaches as far as its tick.
//
// Life of a timer: armed into a slot -> from one slot's length before the slot begins it is moved
// to a finer level, with so many of its neighbours per call that the work of a full slot is spread
// over the time until then; when that was not enough, the rest is moved as the slot begins -> on
// level 0, in the slot of `tick_`, it is due. Time jumps from occupied slot to occupied slot, found
// in the bitmaps.
//
// While a slot is half refined, later timers of the same tick are appended to it although a finer
// level would reach them. So those of one tick that are on a finer level were armed before those
// on a coarser one, and all of them fire in the order in which they were armed.

namespace muster::core {

using base::Instant;

/// Half a millisecond: what is due at a whole one has no delay.
inline constexpr Duration wheel_tick{500};

/// Where a timer stands; kept with the timer.
struct WheelPlace {
  std::uint8_t level = 0;
  std::uint8_t slot = 0;
};

/// A hierarchical wheel: arming, disarming and firing cost O(1), whatever is armed.
/// A timer never fires before its instant, and less than a tick after it when asked in time.
///
/// `Links` says how timers are stored: `Ref` names one (`none`: no one), and of a Ref there are
/// `at` (its instant), `place`, `previous` and `next` (references to where they are kept).
/// An instant may be moved to a later one while its timer is armed; it fires at that one then.
template <class Links>
class Wheel {
 public:
  using Ref = typename Links::Ref;

  explicit Wheel(Links links = {}) : links_(links) {
    for (auto& slots : first_) slots.fill(Links::none);
  }
  Wheel(const Wheel&) = delete;
  Wheel& operator=(const Wheel&) = delete;
  ~Wheel() { assert(armed_count_ == 0); }

  /// Arms a timer that is not. Returns when `take_due` has work with it, as `next_deadline`.
  Instant add(Ref timer) {
    ++armed_count_;
    return insert(timer, level_count);
  }

  void remove(Ref timer) {
    unlink(timer);
    --armed_count_;
  }

  /// Disarms and returns one timer that is due at `now`; `none` when there is none, or when
  /// `moves_per_call_max` timers were moved to finer slots and more of that is overdue: then
  /// `next_deadline() <= now`.
  Ref take_due(Instant now) {
    const std::int64_t now_tick = tick_at(now);
    for (int moves = 0; moves < moves_per_call_max; ++moves) {
      const Slot slot = next_slot();
      if (slot.start > now_tick) {
        tick_ = std::max(tick_, now_tick);
        refine_ahead(moves);
        return Links::none;
      }
      tick_ = slot.start;
      const Ref timer = first_[slot.level][slot.index];
      unlink(timer);
      if (slot.level == 0 && tick_not_before(links_.at(timer)) <= tick_) {
        --armed_count_;
        return timer;
      }
      insert(timer, slot.level);
    }
    return Links::none;
  }

  /// When `take_due` has work again: a timer that is due (less than a tick after its instant), or
  /// slots to refine. far_future when nothing is armed.
  Instant next_deadline() const {
    std::int64_t next = never;
    for (std::uint32_t levels = levels_; levels != 0; levels &= levels - 1) {
      const auto level = static_cast<std::size_t>(std::countr_zero(levels));
      next = std::min(next, work_begins(level, first_number(level)));
    }
    return instant_of(next);
  }

  /// Says that it is `now`, before `next_deadline`: what is armed next is put at the right place at
  /// once.
  void skip_to(Instant now) { tick_ = std::max(tick_, tick_at(now)); }

  std::uint64_t armed_count() const { return armed_count_; }

  static constexpr int moves_per_call_max = 1024;
  static constexpr int moves_ahead_per_call_max = 512;

 private:
  struct Slot {
    std::size_t level;
    std::size_t index;
    std::int64_t start;  ///< its first tick, or `tick_` if that has passed
  };

  static constexpr std::int64_t tick_us = wheel_tick.count();
  static constexpr std::int64_t never = INT64_MAX;
  static constexpr std::size_t digit_bits = 5;
  static constexpr std::size_t slot_count = 64;
  static constexpr std::size_t level_count = 11;  // 2^55 ticks: every instant there is
  static_assert(slot_count == 2 << digit_bits);

  /// The first tick that is not before `at`.
  static std::int64_t tick_not_before(Instant at) {
    const std::int64_t us = std::max<std::int64_t>(at.time_since_epoch().count(), 0);
    return us / tick_us + (us % tick_us != 0 ? 1 : 0);
  }
  static std::int64_t tick_at(Instant now) {
    return std::max<std::int64_t>(now.time_since_epoch().count(), 0) / tick_us;
  }
  static Instant instant_of(std::int64_t tick) {
    if (tick > Instant::max().time_since_epoch().count() / tick_us) return base::far_future;
    return Instant(Duration(tick * tick_us));
  }

  // The slots of a level are numbered from the beginning of time on.
  static std::int64_t number_of(std::int64_t tick, std::size_t level) {
    return tick >> (level * digit_bits);
  }
  static std::int64_t start_of(std::size_t level, std::int64_t number) {
    return number << (level * digit_bits);
  }
  static std::size_t index_of(std::int64_t number) {
    return static_cast<std::size_t>(number) & (slot_count - 1);
  }

  bool occupied(std::size_t level, std::size_t index) const {
    return (occupied_[level] >> index & 1) != 0;
  }

  /// Of the first occupied slot of an occupied level.
  std::int64_t first_number(std::size_t level) const {
    const std::int64_t current = number_of(tick_, level);
    return current +
           std::countr_zero(std::rotr(occupied_[level], static_cast<int>(index_of(current))));
  }

  /// The tick from which on a slot is refined, or on level 0 fired.
  std::int64_t work_begins(std::size_t level, std::int64_t number) const {
    if (level == 0) return std::max(number, tick_);
    const std::int64_t begins = start_of(level, number - 1);
    if (begins > tick_) return begins;
    return number == number_of(tick_, level) ? tick_ : tick_ + 1;
  }

  /// The occupied slot that begins first; of those that begin at the same time the coarsest, since
  /// what is in it may be due as well.
  Slot next_slot() const {
    Slot next{0, 0, never};
    for (std::uint32_t levels = levels_; levels != 0; levels &= levels - 1) {
      const auto level = static_cast<std::size_t>(std::countr_zero(levels));
      const std::int64_t number = first_number(level);
      const std::int64_t start = std::max(start_of(level, number), tick_);
      if (start <= next.start) next = {level, index_of(number), start};
    }
    return next;
  }

  /// The finest level on which the tick is less than a ring away.
  std::size_t level_of(std::int64_t tick) const {
    const auto distance = static_cast<std::uint64_t>(tick - tick_);
    const auto bits = static_cast<std::size_t>(std::bit_width(distance));
    const std::size_t level = bits <= digit_bits + 1 ? 0 : (bits - 2) / digit_bits;
    const bool is_near =
        number_of(tick, level) - number_of(tick_, level) < static_cast<std::int64_t>(slot_count);
    return is_near ? level : level + 1;
  }

  /// On the coarsest level below `below` whose slot for this tick is still occupied, or else on the
  /// finest that reaches so far.
  Instant insert(Ref timer, std::size_t below) {
    const std::int64_t tick = std::max(tick_not_before(links_.at(timer)), tick_);
    std::size_t level = level_of(tick);
    std::uint32_t coarser = levels_ & ((1U << below) - 1) & ~((2U << level) - 1);
    for (; coarser != 0; coarser ^= std::bit_floor(coarser)) {
      const auto candidate = static_cast<std::size_t>(std::bit_width(coarser)) - 1;
      if (!occupied(candidate, index_of(number_of(tick, candidate)))) continue;
      level = candidate;
      break;
    }
    const std::int64_t number = number_of(tick, level);
    link(timer, level, index_of(number));
    return instant_of(work_begins(level, number));
  }

  /// A slot's timers are a circle, entered at its end, so that they are served in their order.
  void link(Ref timer, std::size_t level, std::size_t index) {
    links_.place(timer) = {static_cast<std::uint8_t>(level), static_cast<std::uint8_t>(index)};
    Ref& first = first_[level][index];
    if (first == Links::none) {
      first = links_.previous(timer) = links_.next(timer) = timer;
      occupied_[level] |= std::uint64_t{1} << index;
      levels_ |= 1U << level;
      return;
    }
    const Ref last = links_.previous(first);
    links_.next(timer) = first;
    links_.previous(timer) = last;
    links_.next(last) = timer;
    links_.previous(first) = timer;
  }

  void unlink(Ref timer) {
    const auto [level, index] = links_.place(timer);
    Ref& first = first_[level][index];
    const Ref next = links_.next(timer);
    if (next == timer) {
      first = Links::none;
      occupied_[level] &= ~(std::uint64_t{1} << index);
      if (occupied_[level] == 0) levels_ &= ~(1U << level);
      return;
    }
    const Ref previous = links_.previous(timer);
    links_.next(previous) = next;
    links_.previous(next) = previous;
    if (first == timer) first = next;
  }

  /// Refines some of what follows next on each level, the finest first: its time is the nearest.
  void refine_ahead(int moves) {
    for (std::uint32_t levels = levels_ & ~1U; levels != 0; levels &= levels - 1) {
      const auto level = static_cast<std::size_t>(std::countr_zero(levels));
      const std::size_t index = index_of(number_of(tick_, level) + 1);
      for (; occupied(level, index); ++moves) {
        if (moves >= moves_ahead_per_call_max) return;
        const Ref timer = first_[level][index];
        unlink(timer);
        insert(timer, level);
      }
    }
  }

  Links links_;
  std::array<std::array<Ref, slot_count>, level_count> first_;
  std::array<std::uint64_t, level_count> occupied_{};  // one bit per slot
  std::uint32_t levels_ = 0;                           // one bit per level that is occupied
  std::int64_t tick_ = 0;                              // the last one that was looked at
  std::uint64_t armed_count_ = 0;
};

}  // namespace muster::core
