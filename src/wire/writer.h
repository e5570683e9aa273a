#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/little_endian.h"

namespace muster::wire {

/// Appends little-endian numbers and byte strings to a string it does not own.
class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  void u8(std::uint8_t value) { out_.push_back(static_cast<char>(value)); }
  void u16(std::uint16_t value) { number(value); }
  void u32(std::uint32_t value) { number(value); }
  void u64(std::uint64_t value) { number(value); }
  void i32(std::int32_t value) { number(static_cast<std::uint32_t>(value)); }
  void i64(std::int64_t value) { number(static_cast<std::uint64_t>(value)); }

  /// The bytes alone.
  void raw(std::string_view bytes) { out_.append(bytes); }

  /// The bytes with their u32 length in front.
  void bytes(std::string_view bytes) {
    u32(static_cast<std::uint32_t>(bytes.size()));
    raw(bytes);
  }

  /// Where the next byte goes; with `patch_u32` for lengths that are known later.
  std::size_t position() const { return out_.size(); }
  void patch_u32(std::size_t position, std::uint32_t value) {
    base::to_little_endian(value, out_.data() + position);
  }

 private:
  /// A compiler stops to inline it by itself when there are many kinds of messages.
  template <std::unsigned_integral Number>
  [[gnu::always_inline]] void number(Number value) {
    std::array<char, sizeof(Number)> bytes;
    base::to_little_endian(value, bytes.data());
    out_.append(bytes.data(), bytes.size());
  }

  std::string& out_;
};

}  // namespace muster::wire
