#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
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

/// Virtual time: what is to happen, in the order of its time and then of its making.
class Scheduler {
 public:
  Instant now() const { return now_; }

  void at(Instant when, std::function<void()> what) {
    events_.push_back({when < now_ ? now_ : when, ++made_, std::move(what)});
    std::push_heap(events_.begin(), events_.end(), is_later);
  }
  void after(Duration delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }

  void run_until(Instant end) {
    while (!is_stopped_ && !events_.empty() && events_.front().when <= end) {
      std::pop_heap(events_.begin(), events_.end(), is_later);
      const Event event = std::move(events_.back());
      events_.pop_back();
      now_ = event.when;
      event.what();
    }
    if (!is_stopped_) now_ = end;
  }

  /// Nothing happens any more.
  void stop() { is_stopped_ = true; }
  bool is_stopped() const { return is_stopped_; }

 private:
  struct Event {
    Instant when;
    std::uint64_t number;
    std::function<void()> what;
  };
  static bool is_later(const Event& one, const Event& other) {
    return std::pair(one.when, one.number) > std::pair(other.when, other.number);
  }

  Instant now_{std::chrono::seconds(1000)};
  std::uint64_t made_ = 0;
  std::vector<Event> events_;  // a heap
  bool is_stopped_ = false;
};

}  // namespace muster::sim
