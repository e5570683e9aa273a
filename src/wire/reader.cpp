#include "wire/reader.h"

#include <concepts>

namespace muster::wire {
namespace {

template <std::unsigned_integral Number>
Number from_little_endian(std::string_view bytes) {
  Number number = 0;
  for (std::size_t index = bytes.size(); index > 0; --index) {
    number = static_cast<Number>(number << 8U) | static_cast<unsigned char>(bytes[index - 1]);
  }
  return number;
}

}  // namespace

std::uint8_t Reader::u8() {
  const std::string_view bytes = raw(1);
  return bytes.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(bytes[0]);
}
std::uint16_t Reader::u16() {
  const std::string_view bytes = raw(2);
  // Composed in full width, as 8-bit shifts of 16-bit numbers are promoted to int anyway.
  return static_cast<std::uint16_t>(from_little_endian<std::uint32_t>(bytes));
}
std::uint32_t Reader::u32() { return from_little_endian<std::uint32_t>(raw(4)); }
std::uint64_t Reader::u64() { return from_little_endian<std::uint64_t>(raw(8)); }
std::int32_t Reader::i32() { return static_cast<std::int32_t>(u32()); }
std::int64_t Reader::i64() { return static_cast<std::int64_t>(u64()); }

std::string_view Reader::raw(std::size_t count) {
  if (count > rest_.size()) {
    fail();
    return {};
  }
  const std::string_view bytes = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return bytes;
}

std::string_view Reader::bytes() {
  const std::size_t size = u32();
  return raw(size);
}

std::uint32_t Reader::count(std::size_t item_bytes_min) {
  const std::uint32_t count = u32();
  if (count > items_max || count > rest_.size() / item_bytes_min) {
    fail();
    return 0;
  }
  return count;
}

void Reader::fail() {
  ok_ = false;
  rest_ = {};
}

}  // namespace muster::wire
