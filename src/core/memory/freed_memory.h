#pragma once

#include <cstddef>

namespace muster::core {

/// Long memory that nobody needs any more, until the system has it back: in pieces, because that
/// takes as long as copying does. To free 60 values of 16 MiB takes 50 ms.
///
/// It is not charged. The event `Continue` gives it back, in each turn of the loop: at least as
/// much as may be taken in one.
class FreedMemory {
 public:
  /// What is shorter is freed at once.
  static constexpr std::size_t long_bytes_min = std::size_t{64} << 10;

  FreedMemory() = default;
  ~FreedMemory();
  FreedMemory(const FreedMemory&) = delete;
  FreedMemory& operator=(const FreedMemory&) = delete;

  bool empty() const { return last_ == nullptr; }
  /// memory  std::malloc's
  /// bytes   that were used of it, no less than `long_bytes_min`
  void add(char* memory, std::size_t bytes);
  /// Gives about `bytes_max` back. Returns how many.
  std::size_t give_back(std::size_t bytes_max);

 private:
  struct Block;

  Block* last_ = nullptr;
};

}  // namespace muster::core
