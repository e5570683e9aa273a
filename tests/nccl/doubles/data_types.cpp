#include "nccl/doubles/data_types.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace nccl_double {
namespace {

/// An element that is calculated with as it is stored.
template <class Number>
struct Plain {
  using Stored = Number;
  using Value = Number;
  static Value load(Stored stored) { return stored; }
  static Stored store(Value value) { return value; }
};

std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

float float_of(std::uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

struct Bfloat16 {
  using Stored = std::uint16_t;
  using Value = float;
  static Value load(Stored stored) { return float_of(std::uint32_t{stored} << 16); }
  static Stored store(Value value) {
    if (std::isnan(value)) return 0x7fff;
    const std::uint32_t bits = bits_of(value);
    const std::uint32_t to_nearest_even = 0x7fff + ((bits >> 16) & 1);
    return static_cast<Stored>((bits + to_nearest_even) >> 16);
  }
};

struct Float16 {
  using Stored = std::uint16_t;
  using Value = float;
  static Value load(Stored stored) {
    const int exponent = (stored >> 10) & 31;
    const int fraction = stored & 1023;
    const float sign = (stored >> 15) != 0 ? -1.0F : 1.0F;
    if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
    if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
    return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  }
  static Stored store(Value value) {
    const auto sign = static_cast<std::uint32_t>(std::signbit(value) ? 0x8000 : 0);
    if (std::isnan(value)) return static_cast<Stored>(sign | 0x7e00);
    const float size = std::fabs(value);
    if (size >= 65520.0F) return static_cast<Stored>(sign | 0x7c00);
    int exponent = -13;  // of what is below 2^-14, which has no leading 1
    if (size >= std::ldexp(1.0F, -14)) std::frexp(size, &exponent);
    // Eleven bits, to the nearest even; a carry goes into the exponent as it should.
    const auto fraction =
        static_cast<std::uint32_t>(std::nearbyint(std::ldexp(size, 11 - exponent)));
    const auto biased = static_cast<std::uint32_t>(exponent + 13) << 10;
    return static_cast<Stored>(sign | (biased + fraction));
  }
};

/// The types of one byte: what is too large becomes the largest number, `Largest`.
template <int FractionBits, int Bias, unsigned Largest>
struct Float8 {
  using Stored = std::uint8_t;
  using Value = float;
  static Value load(Stored stored) {
    const unsigned size = stored & 127U;
    const float sign = stored > 127 ? -1.0F : 1.0F;
    if (size > Largest) return size == 0x7c && FractionBits == 2 ? sign * INFINITY : NAN;
    const unsigned exponent = size >> FractionBits;
    const unsigned fraction = size % (1U << FractionBits) + (exponent > 0 ? 1U << FractionBits : 0);
    const int power = static_cast<int>(exponent > 0 ? exponent : 1) - Bias - FractionBits;
    return sign * std::ldexp(static_cast<float>(fraction), power);
  }
  /// The nearest of all that there are, and of two the even one.
  static Stored store(Value value) {
    const unsigned sign = std::signbit(value) ? 128 : 0;
    if (std::isnan(value)) return static_cast<Stored>(sign | 127);
    const float size = std::fabs(value);
    unsigned nearest = Largest;
    float distance = std::fabs(load(Largest) - size);
    for (unsigned bits = 0; bits < Largest; ++bits) {
      const float other = std::fabs(load(static_cast<Stored>(bits)) - size);
      if (other < distance || (other == distance && bits % 2 == 0)) nearest = bits;
      distance = std::fmin(distance, other);
    }
    return static_cast<Stored>(sign | nearest);
  }
};

/// Of integers sums wrap around, as on a device.
template <class Value>
Value combine(int reduction, Value left, Value right) {
  if (reduction == maximum) return std::max(left, right);
  if (reduction == minimum) return std::min(left, right);
  if constexpr (std::is_integral_v<Value>) {
    const auto a = static_cast<std::uint64_t>(left);
    const auto b = static_cast<std::uint64_t>(right);
    return static_cast<Value>(reduction == product ? a * b : a + b);
  } else {
    return reduction == product ? left * right : left + right;
  }
}

template <class Element>
void reduce_elements(int reduction, const std::vector<const char*>& blocks, std::size_t count,
                     char* to) {
  using Stored = typename Element::Stored;
  using Value = typename Element::Value;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value_of = [&](const char* block) {
      Stored stored;
      std::memcpy(&stored, block + i * sizeof stored, sizeof stored);
      return Element::load(stored);
    };
    Value value = value_of(blocks.front());
    for (std::size_t rank = 1; rank < blocks.size(); ++rank) {
      value = combine<Value>(reduction, value, value_of(blocks[rank]));
    }
    if (reduction == average) {
      using Whole = std::conditional_t<std::is_signed_v<Value>, std::int64_t, std::uint64_t>;
      using Divisor = std::conditional_t<std::is_integral_v<Value>, Whole, Value>;
      value = static_cast<Value>(value / static_cast<Divisor>(blocks.size()));
    }
    const Stored stored = Element::store(value);
    std::memcpy(to + i * sizeof stored, &stored, sizeof stored);
  }
}

template <class Element>
void scale_elements(const void* factor, std::vector<char>& elements) {
  using Stored = typename Element::Stored;
  Stored stored;
  std::memcpy(&stored, factor, sizeof stored);
  const auto by = Element::load(stored);
  for (std::size_t i = 0; i < elements.size(); i += sizeof stored) {
    std::memcpy(&stored, &elements[i], sizeof stored);
    stored = Element::store(combine(product, Element::load(stored), by));
    std::memcpy(&elements[i], &stored, sizeof stored);
  }
}

using Reduce = void (*)(int, const std::vector<const char*>&, std::size_t, char*);
using Scale = void (*)(const void*, std::vector<char>&);
struct Type {
  std::size_t size;
  Reduce reduce;
  Scale scale;
};
template <class Element>
constexpr Type type_of = {sizeof(typename Element::Stored), &reduce_elements<Element>,
                          &scale_elements<Element>};

constexpr std::array types{
    type_of<Plain<std::int8_t>>,
    type_of<Plain<std::uint8_t>>,
    type_of<Plain<std::int32_t>>,
    type_of<Plain<std::uint32_t>>,
    type_of<Plain<std::int64_t>>,
    type_of<Plain<std::uint64_t>>,
    type_of<Float16>,
    type_of<Plain<float>>,
    type_of<Plain<double>>,
    type_of<Bfloat16>,
    type_of<Float8<3, 7, 0x7e>>,
    type_of<Float8<2, 15, 0x7b>>,
};

}  // namespace

std::size_t size_of_type(int type) {
  const auto index = static_cast<std::size_t>(type);
  return index < types.size() ? types[index].size : 0;
}

void reduce(int reduction, int type, const std::vector<const char*>& blocks, std::size_t count,
            char* to) {
  types[static_cast<std::size_t>(type)].reduce(reduction, blocks, count, to);
}

void scale(int type, const void* factor, std::vector<char>& elements) {
  types[static_cast<std::size_t>(type)].scale(factor, elements);
}

}  // namespace nccl_double
