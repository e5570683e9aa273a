#include "communicator/float16.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace muster::communicator {
namespace {

constexpr int float16_bits = 10;  // of the fraction
constexpr int float32_bits = 23;
constexpr int bits_less = float32_bits - float16_bits;
constexpr int float16_bias = 15;
constexpr int float32_bias = 127;
constexpr std::uint32_t float32_infinity = 0x7f800000;
constexpr std::uint32_t float16_infinity = 0x7c00;
constexpr std::uint32_t sign_of_float32 = 0x80000000;
constexpr std::uint32_t quiet_bit_of_bfloat16 = 0x40;

template <class To, class From>
To bits_of(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

}  // namespace

float of_float16(std::uint16_t bits) {
  const bool is_negative = (bits & 0x8000) != 0;
  const int exponent = bits >> float16_bits & 0x1f;
  const int fraction = bits & 0x3ff;
  if (exponent == 0x1f) {
    const auto pattern = float32_infinity | static_cast<std::uint32_t>(fraction) << bits_less;
    return bits_of<float>(is_negative ? pattern | sign_of_float32 : pattern);
  }
  const int significand = exponent == 0 ? fraction : fraction | 1 << float16_bits;
  const float size = std::ldexp(static_cast<float>(significand),
                                std::max(exponent, 1) - float16_bias - float16_bits);
  return is_negative ? -size : size;
}

std::uint16_t to_float16(float value) {
  const auto pattern = bits_of<std::uint32_t>(value);
  const std::uint32_t sign = (pattern & sign_of_float32) >> 16;
  const std::uint32_t size = pattern & ~sign_of_float32;
  if (size > float32_infinity) {  // not a number: stays one
    return static_cast<std::uint16_t>(sign | float16_infinity | 0x200 |
                                      (size >> bits_less & 0x3ff));
  }
  const int exponent = static_cast<int>(size >> float32_bits) - float32_bias + float16_bias;
  if (exponent >= 0x1f) return static_cast<std::uint16_t>(sign | float16_infinity);
  // As a multiple of the smallest step that float16 has at this size: the rest is rounded by
  // nearbyint, and what is carried runs over into the exponent by itself.
  const int step = std::max(exponent, 1) - float16_bias - float16_bits;
  const auto steps =
      static_cast<std::uint32_t>(std::nearbyint(std::ldexp(std::fabs(value), -step)));
  const auto offset = static_cast<std::uint32_t>(std::max(exponent, 1) - 1) << float16_bits;
  return static_cast<std::uint16_t>(sign | (offset + steps));
}

float of_bfloat16(std::uint16_t bits) {
  return bits_of<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t to_bfloat16(float value) {
  const auto pattern = bits_of<std::uint32_t>(value);
  if ((pattern & ~sign_of_float32) > float32_infinity) {
    return static_cast<std::uint16_t>(pattern >> 16 | quiet_bit_of_bfloat16);
  }
  const std::uint32_t is_odd = pattern >> 16 & 1;
  return static_cast<std::uint16_t>((pattern + 0x7fff + is_odd) >> 16);
}

}  // namespace muster::communicator
