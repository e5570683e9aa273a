#pragma once

#include <cstdint>
#include <string_view>

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

  std::uint8_t u8();
  std::uint16_t u16();
  std::uint32_t u32();
  std::uint64_t u64();
  std::int32_t i32();
  std::int64_t i64();

  /// A view of the next `count` bytes.
  std::string_view raw(std::size_t count);

  /// A byte string with its u32 length in front.
  std::string_view bytes();

  /// A u32 count of items that take at least `item_bytes_min` (above zero) each; a count that
  /// cannot be true of the bytes that are left, or is above `items_max`, makes `ok()` false and
  /// yields zero.
  std::uint32_t count(std::size_t item_bytes_min);

  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }
  std::size_t remaining() const { return rest_.size(); }
  void fail();

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace muster::wire
