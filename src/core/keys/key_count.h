#pragma once

#include <cstdint>

namespace muster::core {

/// How many keys a table has; they count among all of the server as well.
class KeyCount {
 public:
  explicit KeyCount(std::uint64_t& all) : all_(all) {}
  ~KeyCount() { all_ -= count_; }
  KeyCount(const KeyCount&) = delete;
  KeyCount& operator=(const KeyCount&) = delete;

  std::uint64_t value() const { return count_; }
  void add_one() {
    ++count_;
    ++all_;
  }
  void remove(std::uint64_t count) {
    if (is_dropped_) return;
    count_ -= count;
    all_ -= count;
  }
  /// None of them counts any more; they are removed later.
  void drop() {
    remove(count_);
    is_dropped_ = true;
  }

 private:
  std::uint64_t& all_;
  std::uint64_t count_ = 0;
  bool is_dropped_ = false;
};

}  // namespace muster::core
