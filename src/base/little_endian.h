#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>

namespace muster::base {

/// The number whose little-endian bytes stand at `bytes`.
template <std::unsigned_integral Number>
Number from_little_endian(const char* bytes) {
  Number number = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&number, bytes, sizeof(Number));
  } else {
    for (std::size_t index = sizeof(Number); index > 0; --index) {
      number = static_cast<Number>(number << 8U | static_cast<unsigned char>(bytes[index - 1]));
    }
  }
  return number;
}

/// Writes the number's `sizeof(Number)` bytes to `bytes`.
template <std::unsigned_integral Number>
void to_little_endian(Number number, char* bytes) {
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(bytes, &number, sizeof(Number));
  } else {
    for (std::size_t index = 0; index < sizeof(Number); ++index) {
      bytes[index] = static_cast<char>(static_cast<unsigned char>(number >> (8 * index)));
    }
  }
}

}  // namespace muster::base
