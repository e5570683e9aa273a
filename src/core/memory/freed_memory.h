#pragma once

#include <cstddef>

#include "base/time.h"

namespace muster::core {

using base::Instant;

/// Long memory that nobody needs any more. Some of it is kept for a moment, for who needs as much
/// again: memory that is new costs its first use more than the copying. The system gets the rest,
/// in pieces, because that takes as long as copying does. To free 60 values of 16 MiB takes 50 ms.
///
/// It is not charged. The event `Continue` gives it back, in each turn of the loop: at least as
/// much as may be taken in one.
class FreedMemory {
 public:
  /// What is shorter is freed at once.
  static constexpr std::size_t long_bytes_min = std::size_t{64} << 10;
  /// What is shorter is not kept.
  static constexpr std::size_t kept_bytes_min = std::size_t{1} << 20;
  /// For so long; then until the clock is next told.
  static constexpr Duration kept_for = std::chrono::milliseconds(500);

  struct Taken {
    char* memory = nullptr;  ///< null: there is none
    std::size_t bytes = 0;
  };

  FreedMemory() = default;
  ~FreedMemory();
  FreedMemory(const FreedMemory&) = delete;
  FreedMemory& operator=(const FreedMemory&) = delete;

  /// How much is kept at most; nothing by default.
  void set_kept_max(std::size_t bytes_max) { kept_bytes_max_ = bytes_max; }
  std::size_t kept_bytes() const { return kept_bytes_; }
  /// Not given back yet, kept or not.
  std::size_t bytes() const { return bytes_; }

  /// Whether there is nothing to give back.
  bool empty() const { return last_ == nullptr; }
  /// memory  std::malloc's
  /// bytes   that were used of it, no less than `long_bytes_min`
  void add(char* memory, std::size_t bytes);
  /// The same, of memory that may be kept: there is room for it beside all that is charged.
  void add_to_keep(char* memory, std::size_t bytes);
  /// Of what is kept, with `bytes` or little more.
  Taken take(std::size_t bytes);
  /// What was kept for long enough is to be given back.
  void advance(Instant now);
  /// All that is kept is to be given back.
  void let_go_of_kept();
  /// Gives about `bytes_max` back. Returns how many.
  std::size_t give_back(std::size_t bytes_max);
  /// Gives everything back, also what is kept.
  void give_all_back();

 private:
  struct Block;

  Block* last_ = nullptr;  // to be given back
  Block* kept_ = nullptr;  // the newest
  std::size_t bytes_ = 0;
  std::size_t kept_bytes_ = 0;
  std::size_t kept_bytes_max_ = 0;
  Instant now_{};
};

}  // namespace muster::core
