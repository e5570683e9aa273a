#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "communicator/float16.h"
#include "communicator/float8.h"
#include "runtime/tensor/combine.h"
#include "runtime/tensor/small_floats.h"

// Elements combined: compared with the same reckoned one by one, in plain C++.

namespace muster::runtime {
namespace {

constexpr ReduceOp all_operations[] = {ReduceOp::sum,    ReduceOp::product, ReduceOp::max,
                                       ReduceOp::min,    ReduceOp::average, ReduceOp::bit_and,
                                       ReduceOp::bit_or, ReduceOp::bit_xor};
constexpr std::size_t long_count = 2500;  // several blocks of every type, and a rest

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

template <class Element>
std::vector<Element> combined(const std::vector<std::vector<Element>>& sources, Dtype dtype,
                              ReduceOp operation) {
  std::vector<const void*> places;
  for (const auto& source : sources) places.push_back(source.data());
  std::vector<Element> result(sources.front().size());
  const std::size_t count = result.size() * sizeof(Element) / dtype.byte_count();
  combine(result.data(), places, count, dtype, operation);
  return result;
}

/// Random bytes, so every pattern of a type.
template <class Element>
std::vector<std::vector<Element>> random_sources(std::size_t sources, std::size_t count) {
  std::mt19937_64 dice(count * 31 + sources);
  std::vector<std::vector<Element>> all(sources, std::vector<Element>(count));
  for (auto& source : all) {
    for (Element& element : source) {
      const std::uint64_t bits = dice();
      std::memcpy(&element, &bits, sizeof element);
    }
  }
  return all;
}

template <class Number>
Number reckoned(Number a, Number b, ReduceOp operation) {
  switch (operation) {
    case ReduceOp::sum:
    case ReduceOp::average: return a + b;
    case ReduceOp::product: return a * b;
    case ReduceOp::max:
      return std::isnan(a) || std::isnan(b) ? (std::isnan(a) ? a : b) : std::max(b, a);
    case ReduceOp::min:
      return std::isnan(a) || std::isnan(b) ? (std::isnan(a) ? a : b) : std::min(b, a);
    default: FAIL("not of floats"); return a;
  }
}

template <class Integer>
Integer reckoned_integer(Integer a, Integer b, ReduceOp operation) {
  const auto wide_a = static_cast<std::uint64_t>(a);
  const auto wide_b = static_cast<std::uint64_t>(b);
  switch (operation) {
    case ReduceOp::sum: return static_cast<Integer>(wide_a + wide_b);
    case ReduceOp::product: return static_cast<Integer>(wide_a * wide_b);
    case ReduceOp::max: return std::max(a, b);
    case ReduceOp::min: return std::min(a, b);
    case ReduceOp::bit_and: return static_cast<Integer>(wide_a & wide_b);
    case ReduceOp::bit_or: return static_cast<Integer>(wide_a | wide_b);
    case ReduceOp::bit_xor: return static_cast<Integer>(wide_a ^ wide_b);
    case ReduceOp::average: break;
  }
  FAIL("not of integers");
  return a;
}

template <class Integer>
void check_integers() {
  const Dtype type = dtype::of<Integer>();
  CAPTURE(to_string(type));
  for (const ReduceOp operation : all_operations) {
    if (refusal_of(type, operation).has_value()) continue;
    CAPTURE(operation);
    for (const std::size_t count : {std::size_t{1}, std::size_t{5}, long_count}) {
      const auto sources = random_sources<Integer>(5, count);
      std::vector<Integer> expected = sources[0];
      for (std::size_t number = 1; number < sources.size(); ++number) {
        for (std::size_t index = 0; index < count; ++index) {
          expected[index] = reckoned_integer(expected[index], sources[number][index], operation);
        }
      }
      CHECK(combined(sources, type, operation) == expected);
    }
  }
}

/// Whether two numbers are the same to the last bit, or both not a number.
template <class Number, class Element>
bool is_same(Number number, Element a, Element b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(number(a)) && std::isnan(number(b)));
}

/// wide, narrow  the conversions of one element
template <class Element, class Wide, class Narrow>
void check_floats(Dtype type, Wide wide, Narrow narrow) {
  CAPTURE(to_string(type));
  for (const ReduceOp operation : all_operations) {
    if (refusal_of(type, operation).has_value()) continue;
    CAPTURE(operation);
    for (const std::size_t sources_count : {std::size_t{2}, std::size_t{3}, std::size_t{6}}) {
      const auto sources = random_sources<Element>(sources_count, long_count);
      const auto results = combined(sources, type, operation);
      std::size_t different = 0;
      for (std::size_t index = 0; index < long_count; ++index) {
        auto number = wide(sources[0][index]);
        for (std::size_t next = 1; next < sources_count; ++next) {
          number = reckoned(number, wide(sources[next][index]), operation);
        }
        using Number = decltype(number);
        if (operation == ReduceOp::average) number /= static_cast<Number>(sources_count);
        if (!is_same(wide, results[index], narrow(number))) ++different;
      }
      CHECK(different == 0);
    }
  }
}

TEST_CASE("integers of all sizes wrap around") {
  check_integers<std::int8_t>();
  check_integers<std::int16_t>();
  check_integers<std::int32_t>();
  check_integers<std::int64_t>();
  check_integers<std::uint8_t>();
  check_integers<std::uint16_t>();
  check_integers<std::uint32_t>();
  check_integers<std::uint64_t>();
}

TEST_CASE("floating-point numbers are combined in the order of sources, and rounded once") {
  using namespace communicator;
  const auto itself = [](auto number) { return number; };
  check_floats<float>(dtype::float32, itself, itself);
  check_floats<double>(dtype::float64, itself, itself);
  check_floats<std::uint16_t>(dtype::float16, of_float16, to_float16);
  check_floats<std::uint16_t>(dtype::bfloat16, of_bfloat16, to_bfloat16);
  check_floats<std::uint8_t>(dtype::float8_e4m3fn, of_float8_e4m3, to_float8_e4m3);
  check_floats<std::uint8_t>(dtype::float8_e5m2, of_float8_e5m2, to_float8_e5m2);
}

TEST_CASE("a nan in any source stays a nan, and zeros keep to the order") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const ReduceOp operation :
       {ReduceOp::sum, ReduceOp::product, ReduceOp::max, ReduceOp::min, ReduceOp::average}) {
    CAPTURE(operation);
    const auto result = combined<float>({{1, nan, 1, nan}, {2, 2, nan, nan}, {3, 3, 3, 3}},
                                        dtype::float32, operation);
    CHECK_FALSE(std::isnan(result[0]));
    CHECK(std::isnan(result[1]));
    CHECK(std::isnan(result[2]));
    CHECK(std::isnan(result[3]));
  }
  const auto zeros = combined<float>({{0.0F, -0.0F}, {-0.0F, 0.0F}}, dtype::float32, ReduceOp::max);
  CHECK(std::signbit(zeros[0]));
  CHECK_FALSE(std::signbit(zeros[1]));
}

TEST_CASE("bools are what is not zero") {
  const std::vector<std::vector<std::uint8_t>> sources = {{0, 0, 1, 2, 4}, {0, 1, 0, 1, 0}};
  using Bytes = std::vector<std::uint8_t>;
  CHECK(combined(sources, dtype::boolean, ReduceOp::max) == Bytes{0, 1, 1, 1, 1});
  CHECK(combined(sources, dtype::boolean, ReduceOp::bit_or) == Bytes{0, 1, 1, 1, 1});
  CHECK(combined(sources, dtype::boolean, ReduceOp::min) == Bytes{0, 0, 0, 1, 0});
  CHECK(combined(sources, dtype::boolean, ReduceOp::bit_and) == Bytes{0, 0, 0, 1, 0});
  CHECK(combined(sources, dtype::boolean, ReduceOp::bit_xor) == Bytes{0, 1, 1, 0, 1});
}

TEST_CASE("an element has the same bits at every place, and in any memory") {
  for (const Dtype type : {dtype::float32, dtype::float16, dtype::float8_e4m3fn, dtype::int8}) {
    CAPTURE(to_string(type));
    const std::size_t bytes = type.byte_count();
    const auto sources = random_sources<char>(3, long_count * bytes);
    const auto whole = combined(sources, type, ReduceOp::sum);
    std::vector<char> memory(whole.size() + 16);
    std::vector<std::vector<char>> moved(3, std::vector<char>(memory.size()));
    std::size_t different = 0;
    for (std::size_t first = 0; first < long_count; first = first * 2 + 1) {
      const std::size_t count = std::min(long_count - first, std::size_t{600});
      std::vector<const void*> places;
      for (std::size_t number = 0; number < 3; ++number) {
        const std::size_t shift = first % 8;
        std::memcpy(moved[number].data() + shift, sources[number].data() + first * bytes,
                    count * bytes);
        places.push_back(moved[number].data() + shift);
      }
      combine(memory.data() + 1, places, count, type, ReduceOp::sum);
      if (std::memcmp(memory.data() + 1, whole.data() + first * bytes, count * bytes) != 0) {
        ++different;
      }
    }
    CHECK(different == 0);
  }
}

TEST_CASE("the result may be where a source is, and of one source is its copy") {
  const auto sources = random_sources<std::int32_t>(3, long_count);
  const auto expected = combined(sources, dtype::int32, ReduceOp::sum);
  for (std::size_t own = 0; own < 3; ++own) {
    auto changed = sources;
    const void* const places[] = {changed[0].data(), changed[1].data(), changed[2].data()};
    combine(changed[own].data(), {places, 3}, long_count, dtype::int32, ReduceOp::sum);
    CHECK(changed[own] == expected);
  }
  CHECK(combined<std::int32_t>({{1, -2}}, dtype::int32, ReduceOp::sum) ==
        std::vector<std::int32_t>{1, -2});
  combine(nullptr, {nullptr, 0}, 0, dtype::int32, ReduceOp::sum);
}

TEST_CASE("conversions of small floats are those of communicators, of every input") {
  std::size_t different = 0;
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto word = static_cast<std::uint16_t>(bits);
    if (bits_of(Float16::wide(word)) != bits_of(communicator::of_float16(word))) ++different;
    if (bits_of(Bfloat16::wide(word)) != bits_of(communicator::of_bfloat16(word))) ++different;
    const auto byte = static_cast<std::uint8_t>(bits);
    if (bits_of(Float8E4m3fn::wide(byte)) != bits_of(communicator::of_float8_e4m3(byte))) {
      ++different;
    }
    if (bits_of(Float8E5m2::wide(byte)) != bits_of(communicator::of_float8_e5m2(byte))) {
      ++different;
    }
  }
  CHECK(different == 0);
}

TEST_CASE("floats are rounded to small ones as by communicators") {
  // Every upper half of a float, with lower halves that are just below, at and above each tie.
  constexpr std::uint32_t lower_halves[] = {0,      1,      0x0fff, 0x1000, 0x1001, 0x7fff,
                                            0x8000, 0x8001, 0xefff, 0xf000, 0xf001, 0xffff};
  std::size_t different = 0;
  for (std::uint32_t upper = 0; upper <= 0xffff; ++upper) {
    for (const std::uint32_t lower : lower_halves) {
      const float value = float_of(upper << 16 | lower);
      if (std::isnan(value)) {
        if (Float16::narrow(value) != 0x7e00 || Bfloat16::narrow(value) != 0x7fc0) ++different;
        if (Float8E4m3fn::narrow(value) != 0x7f || Float8E5m2::narrow(value) != 0x7f) ++different;
        continue;
      }
      if (Float16::narrow(value) != communicator::to_float16(value)) ++different;
      if (Bfloat16::narrow(value) != communicator::to_bfloat16(value)) ++different;
      if (Float8E4m3fn::narrow(value) != communicator::to_float8_e4m3(value)) ++different;
      if (Float8E5m2::narrow(value) != communicator::to_float8_e5m2(value)) ++different;
    }
  }
  CHECK(different == 0);
}

TEST_CASE("operations without a meaning are refused, whatever their number and type") {
  const auto are_refused = [](Dtype dtype) {
    std::string refused;
    for (const ReduceOp operation : all_operations) {
      refused += refusal_of(dtype, operation).has_value() ? 'x' : '.';
    }
    return refused;
  };
  const std::string of_integers = "....x...";
  const std::string of_floats = ".....xxx";
  CHECK(are_refused(dtype::int8) == of_integers);
  CHECK(are_refused(dtype::int64) == of_integers);
  CHECK(are_refused(dtype::uint16) == of_integers);
  CHECK(are_refused(dtype::float16) == of_floats);
  CHECK(are_refused(dtype::float64) == of_floats);
  CHECK(are_refused(dtype::bfloat16) == of_floats);
  CHECK(are_refused(dtype::float8_e4m3fn) == of_floats);
  CHECK(are_refused(dtype::float8_e5m2) == of_floats);
  CHECK(are_refused(dtype::boolean) == "xx..x...");
  for (const Dtype dtype :
       {dtype::complex64, Dtype{DtypeCode::opaque, 64, 1}, Dtype{DtypeCode::float8_e3m4, 8, 1},
        Dtype{DtypeCode::floating, 128, 1}, Dtype{DtypeCode::signed_integer, 32, 2},
        Dtype{DtypeCode::boolean, 1, 1}, Dtype{static_cast<DtypeCode>(200), 32, 1}}) {
    CAPTURE(to_string(dtype));
    CHECK(are_refused(dtype) == "xxxxxxxx");
  }
  CHECK(refusal_of(dtype::int32, static_cast<ReduceOp>(8)).has_value());
  CHECK(refusal_of(dtype::int32, static_cast<ReduceOp>(255)).has_value());
}

}  // namespace
}  // namespace muster::runtime
