#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>

namespace muster::core {

/// What was remembered last, each under a number of its own: no more than `count_max`, then the
/// oldest is forgotten.
template <class Number, class Value, std::size_t count_max>
class Remembered {
 public:
  void add(Number number, Value value) {
    if (!values_.emplace(number, std::move(value)).second) return;
    order_.push_back(number);
    if (order_.size() <= count_max) return;
    values_.erase(order_.front());
    order_.pop_front();
  }
  /// What is forgotten may be added again, and is then forgotten earlier than others at worst.
  void forget(Number number) { values_.erase(number); }
  /// Null: it is not known, or not any more.
  const Value* find(Number number) const {
    const auto found = values_.find(number);
    return found == values_.end() ? nullptr : &found->second;
  }

 private:
  /// Numbers of connections have the same distances as some counts of buckets.
  struct Spread {
    std::size_t operator()(Number number) const {
      constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;  // 2^64 by the golden ratio
      return (number * golden) >> 32;
    }
  };

  std::unordered_map<Number, Value, Spread> values_;
  std::deque<Number> order_;
};

}  // namespace muster::core
