#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

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
    events_.emplace(std::pair(when < now_ ? now_ : when, ++made_), std::move(what));
  }
  void after(Duration delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }

  void run_until(Instant end) {
    while (!events_.empty() && events_.begin()->first.first <= end) {
      auto event = events_.extract(events_.begin());
      now_ = event.key().first;
      event.mapped()();
    }
    now_ = end;
  }

 private:
  Instant now_{std::chrono::seconds(1000)};
  std::uint64_t made_ = 0;
  std::map<std::pair<Instant, std::uint64_t>, std::function<void()>> events_;
};

}  // namespace muster::sim
