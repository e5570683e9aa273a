#include "communicator/float8.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace muster::communicator {
namespace {

struct Format {
  int fraction_bits;
  int bias;
  unsigned largest;  ///< finite number
  bool has_infinity;
};
constexpr Format e4m3{3, 7, 0x7e, false};
constexpr Format e5m2{2, 15, 0x7b, true};

constexpr unsigned sign_bit = 0x80;
constexpr unsigned not_a_number = 0x7f;

float of_bits(const Format& format, std::uint8_t bits) {
  const unsigned size = bits & ~sign_bit;
  const bool is_infinite = format.has_infinity && size == format.largest + 1;
  float value = std::numeric_limits<float>::quiet_NaN();
  if (is_infinite) value = std::numeric_limits<float>::infinity();
  if (size <= format.largest) {
    const int exponent = static_cast<int>(size >> format.fraction_bits);
    const unsigned fraction = size & ((1U << format.fraction_bits) - 1);
    const unsigned leading = exponent == 0 ? 0 : 1U << format.fraction_bits;
    value = std::ldexp(static_cast<float>(leading + fraction),
                       std::max(exponent, 1) - format.bias - format.fraction_bits);
  }
  return std::copysign(value, (bits & sign_bit) != 0 ? -1.0F : 1.0F);
}

std::uint8_t to_bits(const Format& format, float value) {
  const unsigned sign = std::signbit(value) ? sign_bit : 0;
  if (std::isnan(value)) return static_cast<std::uint8_t>(sign | not_a_number);
  const float size = std::fabs(value);
  if (size >= of_bits(format, static_cast<std::uint8_t>(format.largest))) {
    return static_cast<std::uint8_t>(sign | format.largest);
  }
  // As a multiple of the smallest step that the type has at this size: the rest is rounded by
  // nearbyint, and what is carried runs over into the exponent by itself.
  const int exponent = size == 0 ? 1 : std::max(std::ilogb(size) + format.bias, 1);
  const int step = exponent - format.bias - format.fraction_bits;
  const auto steps = static_cast<unsigned>(std::nearbyint(std::ldexp(size, -step)));
  const unsigned offset = static_cast<unsigned>(exponent - 1) << format.fraction_bits;
  return static_cast<std::uint8_t>(sign | std::min(offset + steps, format.largest));
}

}  // namespace

float of_float8_e4m3(std::uint8_t bits) { return of_bits(e4m3, bits); }
std::uint8_t to_float8_e4m3(float value) { return to_bits(e4m3, value); }
float of_float8_e5m2(std::uint8_t bits) { return of_bits(e5m2, bits); }
std::uint8_t to_float8_e5m2(float value) { return to_bits(e5m2, value); }

}  // namespace muster::communicator
