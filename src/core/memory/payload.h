#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/memory/quota.h"

namespace muster::core {

/// What a payload takes beside its bytes; checked by tests/unit/core/memory_test.cpp.
inline constexpr std::uint64_t payload_overhead_bytes = 80;

/// Bytes that are shared by the table, parked rounds, result caches and unsent replies, and
/// charged once until the last of them lets go. A quota outlives its payloads.
class ChargedBytes {
 public:
  explicit ChargedBytes(std::string_view view) : view_(view) {}
  ChargedBytes(const ChargedBytes&) = delete;
  ChargedBytes& operator=(const ChargedBytes&) = delete;

  std::string_view view() const { return view_; }

 protected:
  std::string_view view_;
};
using Payload = std::shared_ptr<const ChargedBytes>;

/// A payload whose bytes are still to be written.
struct BlankPayload {
  Payload payload;
  char* bytes = nullptr;
};

// One allocation each, two if it is long. Null when the quota refuses, or the system; the quota is
// short then.
BlankPayload make_blank_payload(Quota& quota, std::size_t bytes, Charging charging);
Payload make_payload(Quota& quota, std::string_view bytes, Charging charging = Charging::normal);
/// Of the two one after the other.
Payload make_payload_joined(Quota& quota, std::string_view first, std::string_view second);

/// A part of the bytes of another one, which it keeps. Charged as nothing of its own.
Payload part_of(Payload whole, std::string_view bytes);

/// Of bytes that are owned already, not copied. Charged in any case, with what the string has
/// beyond them.
Payload make_payload_always(Quota& quota, std::string bytes);

}  // namespace muster::core
