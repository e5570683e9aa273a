#pragma once

#include <cstdint>

#include "base/time.h"

namespace muster::server {

/// Gives memory that was freed back to the system.
///
/// The C library keeps small pieces that were freed, for the process's next ones: after a flood for
/// as long as the process lives. So when much less is in use than was before, it is asked to give
/// back what it has. When very much less is in use, that happens without waiting, since it takes
/// longer the more there is: one to three milliseconds for `at_once_bytes`.
class HeapTrimmer {
 public:
  /// Less is not worth it.
  static constexpr std::uint64_t unused_bytes_min = std::uint64_t{1} << 20;
  /// It has to be unused for so long; a client may need it again.
  static constexpr Duration patience{std::chrono::seconds(1)};
  static constexpr std::uint64_t at_once_bytes = std::uint64_t{16} << 20;
  /// Trimming may take one part of so many of the time.
  static constexpr int time_part = 20;

  /// bytes  that are in use now, about
  void note(std::uint64_t bytes, base::Instant now) {
    if (bytes + unused_bytes_min > peak_bytes_) {
      if (bytes > peak_bytes_) peak_bytes_ = bytes;
      unused_since_ = base::far_future;
    } else if (is_due(bytes, now)) {
      trim(bytes);
    }
  }

 private:
  bool is_due(std::uint64_t bytes, base::Instant now);
  void trim(std::uint64_t bytes);

  std::uint64_t peak_bytes_ = 0;  ///< since it was trimmed last
  base::Instant unused_since_ = base::far_future;
  base::Instant not_before_{};
};

}  // namespace muster::server
