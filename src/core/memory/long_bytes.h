#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/memory/payload.h"

namespace muster::core {

/// Bytes in memory of their own, of std::malloc's, which is given back in pieces.
class LongBytes : public ChargedBytes {
 public:
  /// Takes over `memory`, and a charge that was made already for `memory_bytes` and
  /// `payload_overhead_bytes`.
  LongBytes(Quota& quota, char* memory, std::size_t memory_bytes, std::string_view view)
      : LongBytes(quota, memory, memory_bytes, view, memory_bytes + payload_overhead_bytes) {}
  ~LongBytes() {
    quota_.release(charged_bytes_);
    quota_.give_back(memory_, memory_bytes_);
  }

 protected:
  LongBytes(Quota& quota, char* memory, std::size_t memory_bytes, std::string_view view,
            std::uint64_t charged_bytes)
      : ChargedBytes(view),
        quota_(quota),
        memory_(memory),
        memory_bytes_(memory_bytes),
        charged_bytes_(charged_bytes) {}

  Quota& quota_;
  char* const memory_;
  const std::size_t memory_bytes_;
  std::uint64_t charged_bytes_;
};

}  // namespace muster::core
