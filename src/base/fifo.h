#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace muster::base {

/// A queue in one piece of memory, which it keeps while it is short: what comes and goes needs no
/// memory each time. Cost: O(1) per element, amortized.
template <class T>
class Fifo {
 public:
  bool empty() const { return first_ == elements_.size(); }
  std::size_t size() const { return elements_.size() - first_; }

  T& front() { return elements_[first_]; }
  const T& front() const { return elements_[first_]; }
  T& back() { return elements_.back(); }
  const T& back() const { return elements_.back(); }
  /// Counted from the front.
  const T& operator[](std::size_t index) const { return elements_[first_ + index]; }

  void push_back(T element) { elements_.push_back(std::move(element)); }
  void pop_front() {
    ++first_;
    if (2 * first_ < elements_.size()) return;
    elements_.erase(elements_.begin(), elements_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
    if (elements_.empty() && elements_.capacity() > kept_max) elements_ = std::vector<T>();
  }
  void pop_back() {
    elements_.pop_back();
    if (empty()) clear();
  }
  void clear() {
    elements_.clear();
    first_ = 0;
  }

 private:
  static constexpr std::size_t kept_max = 1024;

  std::vector<T> elements_;  // from `first_` on
  std::size_t first_ = 0;
};

}  // namespace muster::base
