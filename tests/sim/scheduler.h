#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/time.h"

namespace muster::sim {

using base::Instant;

/// splitmix64: the same seed gives the same story.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }
  std::uint64_t below(std::uint64_t limit) { return next() % limit; }
  bool one_in(std::uint64_t count) { return below(count) == 0; }
  Duration between(Duration low, Duration high) {
    const auto span = static_cast<std::uint64_t>((high - low).count()) + 1;
    return low + Duration(static_cast<Duration::rep>(below(span)));
  }

 private:
  std::uint64_t state_;
};

/// Something to be done once, without an allocation: millions of them are made each minute.
class Deed {
 public:
  Deed() = default;
  Deed(const Deed&) = delete;
  Deed& operator=(const Deed&) = delete;
  ~Deed() { clear(); }

  template <class What>
  void set(What&& what) {
    using Kept = std::decay_t<What>;
    static_assert(sizeof(Kept) <= sizeof room_, "let it hold a std::function");
    new (room_) Kept(std::forward<What>(what));
    run_ = [](void* kept) { (*static_cast<Kept*>(kept))(); };
    destroy_ = [](void* kept) { static_cast<Kept*>(kept)->~Kept(); };
  }
  void run() { run_(room_); }
  void clear() {
    if (destroy_ != nullptr) destroy_(room_);
    destroy_ = nullptr;
  }

 private:
  alignas(std::max_align_t) std::byte room_[48];
  void (*run_)(void*) = nullptr;
  void (*destroy_)(void*) = nullptr;
};

/// Virtual time: what is to happen, in the order of its time and then of its making.
class Scheduler {
 public:
  Instant now() const { return now_; }

  template <class What>
  void at(Instant when, What&& what) {
    const std::uint32_t place = free_place();
    deeds_[place].set(std::forward<What>(what));
    events_.push_back({when < now_ ? now_ : when, ++made_, place});
    std::push_heap(events_.begin(), events_.end(), IsLater());
  }
  template <class What>
  void after(Duration delay, What&& what) {
    at(now_ + delay, std::forward<What>(what));
  }

  void run_until(Instant end) {
    while (!is_stopped_ && !events_.empty() && events_.front().when <= end) {
      std::pop_heap(events_.begin(), events_.end(), IsLater());
      const Event event = events_.back();
      events_.pop_back();
      now_ = event.when;
      deeds_[event.place].run();
      deeds_[event.place].clear();
      free_.push_back(event.place);
      if (after_each_) after_each_();
    }
    if (!is_stopped_) now_ = end;
  }

  /// What is done after everything that happens.
  void set_after_each(std::function<void()> what) { after_each_ = std::move(what); }

  /// Nothing happens any more.
  void stop() { is_stopped_ = true; }
  bool is_stopped() const { return is_stopped_; }

 private:
  struct Event {
    Instant when;
    std::uint64_t number;
    std::uint32_t place;  ///< of its deed
  };
  struct IsLater {
    bool operator()(const Event& one, const Event& other) const {
      return one.when != other.when ? one.when > other.when : one.number > other.number;
    }
  };

  std::uint32_t free_place() {
    if (free_.empty()) {
      deeds_.emplace_back();
      return static_cast<std::uint32_t>(deeds_.size() - 1);
    }
    const std::uint32_t place = free_.back();
    free_.pop_back();
    return place;
  }

  Instant now_{std::chrono::seconds(1000)};
  std::uint64_t made_ = 0;
  std::vector<Event> events_;  // a heap
  std::deque<Deed> deeds_;     // they never move: one may make others while it is done
  std::vector<std::uint32_t> free_;
  std::function<void()> after_each_;
  bool is_stopped_ = false;
};

/// Rings at the instant to which it was set last. To set it to a later one costs nothing: it looks
/// again when the earlier one has come.
class Alarm {
 public:
  Alarm(Scheduler& scheduler, std::function<void()> ring)
      : scheduler_(scheduler), ring_(std::move(ring)) {}

  void set(Instant when) {
    wanted_ = when;
    if (when < looks_at_) look(when);
  }
  void unset() { wanted_ = base::far_future; }
  bool is_due() const { return wanted_ <= scheduler_.now(); }

 private:
  void look(Instant when) {
    looks_at_ = when;
    scheduler_.at(when, [this, number = ++number_] {
      if (number != number_) return;
      looks_at_ = base::far_future;
      if (is_due()) return ring_();
      if (wanted_ != base::far_future) look(wanted_);
    });
  }

  Scheduler& scheduler_;
  std::function<void()> ring_;
  Instant wanted_ = base::far_future;
  Instant looks_at_ = base::far_future;
  std::uint64_t number_ = 0;  ///< of the look that counts
};

}  // namespace muster::sim
