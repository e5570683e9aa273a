#pragma once

#include <cstdint>
#include <cstring>

namespace muster::runtime {

// Conversions of the small floating-point types, with the results of those in
// communicator/float16.h and communicator/float8.h for all inputs. These have neither calls nor
// branches, so that a compiler makes vectors of a loop over them: every case is computed, and the
// fitting one chosen.
//
// A number below the smallest normal one ("small") is a multiple of a fixed step. It is converted
// by a float whose own last bit is that step: its bits count the steps, an addition rounds to them.

template <class To, class From>
To pattern_of(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

/// One of two, by bits: of `condition ? a : b` a compiler would make a branch, so that it need not
/// compute a float that may be of no use.
inline std::int32_t chosen(std::int32_t mask, std::int32_t a, std::int32_t b) {
  return (a & mask) | (b & ~mask);
}
/// All bits, or none.
inline std::int32_t mask_of_less(std::int32_t a, std::int32_t b) { return (a - b) >> 31; }

namespace float32 {
constexpr std::int32_t infinity = 0x7f800000;
constexpr std::int32_t quiet_nan = 0x7fc00000;
constexpr std::int32_t size_mask = 0x7fffffff;
constexpr int fraction_bits = 23;
constexpr int bias = 127;
}  // namespace float32

/// How a small floating-point type is laid out.
template <int its_bits, int its_fraction_bits, int its_bias>
struct SmallFormat {
  static constexpr int bits = its_bits;
  static constexpr int sign_shift = 32 - its_bits;
  static constexpr int shift = float32::fraction_bits - its_fraction_bits;
  static constexpr std::int32_t sign_mask = 1 << (its_bits - 1);
  static constexpr std::int32_t exponent_step = 1 << its_fraction_bits;
  /// Added to the exponent of the small type to make that of float32.
  static constexpr std::int32_t rebias = (float32::bias - its_bias) << float32::fraction_bits;
  /// The smallest normal number, as float32's bits.
  static constexpr std::int32_t normal = rebias + (1 << float32::fraction_bits);
  /// The float whose last bit is the step of small numbers.
  static constexpr std::int32_t steps =
      (float32::bias + float32::fraction_bits + 1 - its_bias - its_fraction_bits)
      << float32::fraction_bits;
};

/// The float32's bits of a number's size (its bits without the sign) that is finite.
template <class Format>
std::int32_t widened(std::int32_t size) {
  const std::int32_t large = (size << Format::shift) + Format::rebias;
  const float counted = pattern_of<float>(Format::steps | size) - pattern_of<float>(Format::steps);
  return chosen(mask_of_less(size, Format::exponent_step), pattern_of<std::int32_t>(counted),
                large);
}

/// The reverse, rounded to nearest, ties to even. What is too large is carried into sizes above the
/// largest.
template <class Format>
std::int32_t narrowed(std::int32_t size) {
  const std::int32_t half = (1 << (Format::shift - 1)) - 1;
  const std::int32_t is_odd = size >> Format::shift & 1;
  const std::int32_t large = (size - Format::rebias + half + is_odd) >> Format::shift;
  const float counted = pattern_of<float>(size) + pattern_of<float>(Format::steps);
  const std::int32_t small = pattern_of<std::int32_t>(counted) - Format::steps;
  return chosen(mask_of_less(size, Format::normal), small, large);
}

template <class Format>
float with_sign_of(std::int32_t bits, std::int32_t size) {
  const auto sign = static_cast<std::uint32_t>(bits & Format::sign_mask) << Format::sign_shift;
  return pattern_of<float>(static_cast<std::uint32_t>(size) | sign);
}

/// The sign of a float, where the small type has it.
template <class Format>
std::int32_t sign_of(float value) {
  return static_cast<std::int32_t>(pattern_of<std::uint32_t>(value) >> Format::sign_shift) &
         Format::sign_mask;
}

inline std::int32_t size_of_float(float value) {
  return pattern_of<std::int32_t>(value) & float32::size_mask;
}

inline std::int32_t mask_of_nan(std::int32_t size) { return mask_of_less(float32::infinity, size); }

/// The float32's bits of a size below `end`, which are those of finite numbers, else `other`.
template <class Format>
std::int32_t finite_or(std::int32_t size, std::int32_t end, std::int32_t other) {
  return chosen(mask_of_less(size, end), widened<Format>(size), other);
}

struct Float16 {
  using Bits = std::uint16_t;
  using Format = SmallFormat<16, 10, 15>;
  static float wide(Bits bits) {
    const std::int32_t size = bits & 0x7fff;
    const std::int32_t endless = float32::infinity | size << Format::shift;
    return with_sign_of<Format>(bits, finite_or<Format>(size, 0x7c00, endless));
  }
  static Bits narrow(float value) {
    const std::int32_t size = size_of_float(value);
    const std::int32_t rounded =
        chosen(mask_of_less(size, 0x47800000), narrowed<Format>(size), 0x7c00);
    return static_cast<Bits>(chosen(mask_of_nan(size), 0x7e00, sign_of<Format>(value) | rounded));
  }
};

struct Bfloat16 {
  using Bits = std::uint16_t;
  static float wide(Bits bits) { return pattern_of<float>(static_cast<std::uint32_t>(bits) << 16); }
  static Bits narrow(float value) {
    const auto bits = pattern_of<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const std::int32_t size = size_of_float(value);
    return static_cast<Bits>(chosen(mask_of_nan(size), 0x7fc0, static_cast<std::int32_t>(rounded)));
  }
};

/// Without infinity. What is too large becomes the largest number.
struct Float8E4m3fn {
  using Bits = std::uint8_t;
  using Format = SmallFormat<8, 3, 7>;
  static float wide(Bits bits) {
    const std::int32_t size = bits & 0x7f;
    return with_sign_of<Format>(bits, finite_or<Format>(size, 0x7f, float32::quiet_nan));
  }
  static Bits narrow(float value) {
    const std::int32_t size = size_of_float(value);
    const std::int32_t rounded =
        chosen(mask_of_less(size, 0x43e00000), narrowed<Format>(size), 0x7e);
    return static_cast<Bits>(chosen(mask_of_nan(size), 0x7f, sign_of<Format>(value) | rounded));
  }
};

/// With infinity, but what is too large, or infinite, becomes the largest number.
struct Float8E5m2 {
  using Bits = std::uint8_t;
  using Format = SmallFormat<8, 2, 15>;
  static float wide(Bits bits) {
    const std::int32_t size = bits & 0x7f;
    const std::int32_t endless =
        chosen(mask_of_less(size, 0x7d), float32::infinity, float32::quiet_nan);
    return with_sign_of<Format>(bits, finite_or<Format>(size, 0x7c, endless));
  }
  static Bits narrow(float value) {
    const std::int32_t size = size_of_float(value);
    const std::int32_t rounded =
        chosen(mask_of_less(size, 0x47600000), narrowed<Format>(size), 0x7b);
    return static_cast<Bits>(chosen(mask_of_nan(size), 0x7f, sign_of<Format>(value) | rounded));
  }
};

}  // namespace muster::runtime
