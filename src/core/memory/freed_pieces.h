#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace muster::core {

/// Keeps what events have freed from being joined all at once.
///
/// The C library puts small pieces that are freed aside, and joins all of them when it next needs a
/// larger one. Of a million keys that takes 20 ms, in the turn of whoever comes next, in however
/// many events they were freed. So a larger piece is asked for, and given back, now and then.
class FreedPieces {
 public:
  /// An event took so many steps, each of which may have freed some.
  void note(std::uint64_t steps) {
    steps_ += steps;
    if (steps_ >= steps_max) join();
  }

 private:
  static constexpr std::uint64_t steps_max = 4096;
  static constexpr std::size_t larger_bytes = 8192;  ///< than those of which it keeps some by size

  void join() {
    steps_ = 0;
    void* volatile larger = std::malloc(larger_bytes);  // volatile: or nothing would be asked for
    std::free(larger);
  }

  std::uint64_t steps_ = 0;
};

}  // namespace muster::core
