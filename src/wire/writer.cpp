#include "wire/writer.h"

#include <array>
#include <concepts>

namespace muster::wire {
namespace {

template <std::unsigned_integral Number>
std::array<char, sizeof(Number)> little_endian(Number number) {
  std::array<char, sizeof(Number)> bytes{};
  for (std::size_t index = 0; index < bytes.size(); ++index) {
    bytes[index] = static_cast<char>(static_cast<unsigned char>(number >> (8 * index)));
  }
  return bytes;
}

template <std::unsigned_integral Number>
void append(std::string& out, Number number) {
  const auto bytes = little_endian(number);
  out.append(bytes.data(), bytes.size());
}

}  // namespace

void Writer::u8(std::uint8_t value) { out_.push_back(static_cast<char>(value)); }
void Writer::u16(std::uint16_t value) { append(out_, value); }
void Writer::u32(std::uint32_t value) { append(out_, value); }
void Writer::u64(std::uint64_t value) { append(out_, value); }
void Writer::i32(std::int32_t value) { append(out_, static_cast<std::uint32_t>(value)); }
void Writer::i64(std::int64_t value) { append(out_, static_cast<std::uint64_t>(value)); }

void Writer::raw(std::string_view bytes) { out_.append(bytes); }

void Writer::bytes(std::string_view bytes) {
  u32(static_cast<std::uint32_t>(bytes.size()));
  raw(bytes);
}

void Writer::patch_u32(std::size_t position, std::uint32_t value) {
  const auto bytes = little_endian(value);
  out_.replace(position, bytes.size(), bytes.data(), bytes.size());
}

}  // namespace muster::wire
