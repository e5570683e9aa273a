#pragma once

#include <cstdint>
#include <string_view>

#include "base/little_endian.h"

namespace muster::wire {

/// The most items a list may have, whatever its bytes would allow: an item can take more memory
/// when it is decoded than on the wire.
inline constexpr std::uint32_t items_max = 1U << 20;

/// Takes little-endian numbers and byte strings from the front of a buffer that it does not own.
///
/// A total function of its input: reading past the end yields zeros and empty views and makes
/// `ok()` false for good, so that a decoder reads everything and asks once. Never throws, never
/// allocates; a declared length is compared with what is there before it is used.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::uint8_t u8() { return number<std::uint8_t>(); }
  std::uint16_t u16() { return number<std::uint16_t>(); }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }
  std::int32_t i32() { return static_cast<std::int32_t>(u32()); }
  std::int64_t i64() { return static_cast<std::int64_t>(u64()); }

  /// A view of the next `count` bytes.
  std::string_view raw(std::size_t count) {
    if (count > rest_.size()) {
      fail();
      return {};
    }
    const std::string_view bytes(rest_.data(), count);
    rest_.remove_prefix(count);
    return bytes;
  }

  /// A byte string with its u32 length in front.
  std::string_view bytes() {
    const std::size_t size = u32();
    return raw(size);
  }

  /// A u32 count of items that take at least `item_bytes_min` (above zero) each; a count that
  /// cannot be true of the bytes that are left, or is above `items_max`, makes `ok()` false and
  /// yields zero.
  std::uint32_t count(std::size_t item_bytes_min) {
    const std::uint32_t count = u32();
    if (count > items_max || count > rest_.size() / item_bytes_min) {
      fail();
      return 0;
    }
    return count;
  }

  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }
  std::size_t remaining() const { return rest_.size(); }
  void fail() {
    ok_ = false;
    rest_ = {};
  }

 private:
  template <std::unsigned_integral Number>
  Number number() {
    if (rest_.size() < sizeof(Number)) {
      fail();
      return 0;
    }
    const auto value = base::from_little_endian<Number>(rest_.data());
    rest_.remove_prefix(sizeof(Number));
    return value;
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace muster::wire
