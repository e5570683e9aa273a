#include "gloo/reduction.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include <doctest/doctest.h>

namespace muster::gloo_internal {
namespace {

template <class Element>
Element reduced(DataType type, ReduceOp operation, Element a, Element b) {
  reduce_function_of(type, operation)(&a, &a, &b, 1);
  return a;
}

TEST_CASE("a sum that is too large is infinite, of one byte the largest number") {
  CHECK(reduced<std::uint16_t>(DataType::float16, ReduceOp::sum, 0x7bff, 0x7bff) == 0x7c00);
  CHECK(reduced<std::uint8_t>(DataType::float8_e4m3, ReduceOp::sum, 0x7e, 0x7e) == 0x7e);
  CHECK(reduced<std::uint8_t>(DataType::float8_e4m3, ReduceOp::product, 0x40, 0x44) == 0x4c);
  CHECK(reduced<std::uint8_t>(DataType::float8_e5m2, ReduceOp::max, 0xc4, 0x3c) == 0x3c);
}

TEST_CASE("integers wrap around") {
  CHECK(reduced<std::int8_t>(DataType::int8, ReduceOp::sum, 127, 1) == -128);
  CHECK(reduced<std::uint8_t>(DataType::uint8, ReduceOp::product, 16, 17) == 16);
  CHECK(reduced(DataType::int32, ReduceOp::sum, std::numeric_limits<std::int32_t>::max(), 1) ==
        std::numeric_limits<std::int32_t>::min());
  CHECK(reduced(DataType::int64, ReduceOp::product, std::numeric_limits<std::int64_t>::max(),
                std::int64_t{2}) == -2);
}

TEST_CASE("signed and unsigned numbers are compared as what they are") {
  CHECK(reduced<std::int8_t>(DataType::int8, ReduceOp::max, -1, 1) == 1);
  CHECK(reduced<std::uint8_t>(DataType::uint8, ReduceOp::max, 0xff, 1) == 0xff);
  CHECK(reduced<std::int64_t>(DataType::int64, ReduceOp::min, -5, 3) == -5);
  CHECK(reduced<std::uint16_t>(DataType::float16, ReduceOp::min, 0xc000, 0x3c00) == 0xc000);
}

template <class Element>
Element scaled(DataType type, double factor, Element element) {
  Element product{};
  multiply(&product, &element, 1, type, factor);
  return product;
}

TEST_CASE("a factor is rounded to the type of the elements, and so is the product") {
  constexpr double tenth = 0.1;
  constexpr double infinite = std::numeric_limits<double>::infinity();
  CHECK(scaled(DataType::float64, tenth, 3.0) == 3 * tenth);
  CHECK(scaled(DataType::float32, tenth, 3.0F) == 3 * 0.1F);
  // 0x2e66 * 3 lies in the middle of 0x34cc and 0x34cd; 0.1 * 3 is nearer to the latter.
  CHECK(scaled<std::uint16_t>(DataType::float16, tenth, 0x4200) == 0x34cc);
  CHECK(scaled<std::uint16_t>(DataType::float16, 2, 0x7bff) == 0x7c00);
  // 0x3dcd * 3 is 0.30029296875.
  CHECK(scaled<std::uint16_t>(DataType::bfloat16, tenth, 0x4040) == 0x3e9a);
  CHECK(scaled<std::uint8_t>(DataType::float8_e4m3, infinite, 0x38) == 0x7e);  // the largest
  CHECK(scaled<std::uint8_t>(DataType::float8_e4m3, 2, 0x7e) == 0x7e);
  CHECK(scaled<std::uint8_t>(DataType::float8_e5m2, -0.5, 0x3c) == 0xb8);
  CHECK(scaled(DataType::float32, -infinite, 2.0F) == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(scaled(DataType::float64, std::nan(""), 2.0)));
}

TEST_CASE("averages of integers are cut towards zero, and of many parts too") {
  std::int32_t sum = -7;
  divide(&sum, 1, DataType::int32, 2);
  CHECK(sum == -3);
  std::int8_t small = 100;
  divide(&small, 1, DataType::int8, 200);
  CHECK(small == 0);
  std::uint64_t large = std::numeric_limits<std::uint64_t>::max();
  divide(&large, 1, DataType::uint64, 2);
  CHECK(large == std::numeric_limits<std::uint64_t>::max() / 2);
}

}  // namespace
}  // namespace muster::gloo_internal
