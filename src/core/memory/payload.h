#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace muster::core {

/// How far past its limit a quota goes, see there.
enum class Charging : std::uint8_t { normal, reserve, always };

/// Counts bytes against a limit, and against that of a parent (a namespace's parent is the
/// server). Charged where memory is taken, released where it is given back.
class Quota {
 public:
  explicit Quota(std::uint64_t limit_bytes, Quota* parent = nullptr)
      : limit_bytes_(limit_bytes), parent_(parent) {}
  Quota(const Quota&) = delete;
  Quota& operator=(const Quota&) = delete;

  /// False, and nothing is charged, when this or a parent's limit would be passed.
  bool charge(std::uint64_t bytes);
  /// As `charge`, with an eighth more than the limit: for what serves reads (waits), which go on
  /// when writes are refused, but not for ever.
  bool charge_reserve(std::uint64_t bytes);
  /// Whether `charge_reserve` would charge them.
  bool has_reserve(std::uint64_t bytes) const;
  /// Charges even past the limit: for what frees memory or must not fail.
  void charge_always(std::uint64_t bytes);
  bool charge(std::uint64_t bytes, Charging charging);
  void release(std::uint64_t bytes);
  /// Whether `charge` would refuse even nothing.
  bool is_passed() const {
    if (is_short_ || used_bytes_ > limit_bytes_) return true;
    return parent_ != nullptr && parent_->is_passed();
  }

  std::uint64_t used_bytes() const { return used_bytes_; }
  std::uint64_t limit_bytes() const { return limit_bytes_; }
  /// This or the parent whose limit refuses `bytes` more.
  const Quota& refusing(std::uint64_t bytes) const;

  /// The system itself has no memory: as long as that is so, `charge` refuses.
  void set_short(bool is_short);
  bool is_short() const;

 private:
  bool has_room(std::uint64_t bytes) const;

  std::uint64_t used_bytes_ = 0;
  std::uint64_t limit_bytes_;
  Quota* parent_;
  bool is_short_ = false;
};

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

// One allocation each. Null when the quota refuses, or the system; the quota is short then.
BlankPayload make_blank_payload(Quota& quota, std::size_t bytes, Charging charging);
Payload make_payload(Quota& quota, std::string_view bytes, Charging charging = Charging::normal);
/// Of the two one after the other.
Payload make_payload_joined(Quota& quota, std::string_view first, std::string_view second);

/// Of bytes that are owned already, not copied. Charged in any case.
Payload make_payload_always(Quota& quota, std::string bytes);

}  // namespace muster::core
