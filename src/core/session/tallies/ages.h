#pragma once

#include <cstdint>
#include <iterator>
#include <list>

#include "base/time.h"

namespace muster::core {

using base::Instant;

/// How many of something there are, and how old the oldest is. Those that came within a quarter of
/// a second stand together, and have the age of the first of them: so what comes and goes at once
/// costs a few instructions, and no search.
class Ages {
 private:
  struct Span {
    Ages& ages;
    Instant since{};
    std::uint64_t count = 0;
    std::list<Span>::iterator self{};
  };

 public:
  /// One of them, a member of it. It goes when it is destroyed.
  class Place {
   public:
    Place() = default;
    ~Place() { leave(); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    void leave() {
      if (span_ == nullptr) return;
      if (--span_->count == 0) span_->ages.drop(*span_);
      span_ = nullptr;
    }

   private:
    friend class Ages;
    Span* span_ = nullptr;
  };

  Ages() { add_span(); }
  Ages(const Ages&) = delete;
  Ages& operator=(const Ages&) = delete;

  /// The place was nowhere. `now` is not before that of the last one.
  void enter(Place& place, Instant now) {
    if (now - spans_.back().since > together_max) begin(now);
    ++spans_.back().count;
    place.span_ = &spans_.back();
  }

  /// cost  O(those that did not come together)
  std::uint64_t count() const {
    std::uint64_t sum = 0;
    for (const Span& span : spans_) sum += span.count;
    return sum;
  }
  /// Zero when there is none.
  Duration oldest(Instant now) const {
    return spans_.front().count == 0 ? Duration::zero() : now - spans_.front().since;
  }

 private:
  static constexpr Duration together_max = std::chrono::milliseconds(250);

  void add_span() {
    spans_.push_back({*this});
    spans_.back().self = std::prev(spans_.end());
  }
  [[gnu::noinline]] void begin(Instant now) {
    if (spans_.back().count != 0) add_span();
    spans_.back().since = now;
  }
  [[gnu::noinline]] void drop(const Span& empty) {
    if (&empty != &spans_.back()) spans_.erase(empty.self);
  }

  std::list<Span> spans_;  ///< at least one: the last is where those who come now stand
};

}  // namespace muster::core
