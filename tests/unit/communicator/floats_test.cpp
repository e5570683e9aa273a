#include <cmath>
#include <cstdint>
#include <limits>

#include <doctest/doctest.h>

#include "communicator/float16.h"
#include "communicator/float8.h"

// The floating-point types that are shorter than float.

namespace muster::communicator {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST_CASE("every float16 and bfloat16 is itself again") {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto word = static_cast<std::uint16_t>(bits);
    if (std::isnan(of_float16(word))) {
      CHECK(std::isnan(of_float16(to_float16(of_float16(word)))));
    } else if (to_float16(of_float16(word)) != word) {
      FAIL("float16 ", bits);
    }
    if (std::isnan(of_bfloat16(word))) {
      CHECK(std::isnan(of_bfloat16(to_bfloat16(of_bfloat16(word)))));
    } else if (to_bfloat16(of_bfloat16(word)) != word) {
      FAIL("bfloat16 ", bits);
    }
  }
}

TEST_CASE("what lies between two of them becomes the nearer one, in the middle the even one") {
  for (std::uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const auto next = static_cast<std::uint16_t>(bits + 1);
    const float low = of_float16(bits);
    const float high = of_float16(next);
    const float middle = (low + high) / 2;
    if (to_float16(std::nextafter(middle, low)) != bits ||
        to_float16(std::nextafter(middle, high)) != next ||
        to_float16(middle) != (bits % 2 == 0 ? bits : next) ||
        to_float16(-middle) != (0x8000 | (bits % 2 == 0 ? bits : next))) {
      FAIL("float16 ", bits);
    }
  }
  for (std::uint16_t bits = 0; bits < 0x7f7f; ++bits) {
    const auto next = static_cast<std::uint16_t>(bits + 1);
    const float middle = of_bfloat16(bits) + (of_bfloat16(next) - of_bfloat16(bits)) / 2;
    if (to_bfloat16(middle) != (bits % 2 == 0 ? bits : next)) FAIL("bfloat16 ", bits);
  }
}

TEST_CASE("what is too large is infinite, what is too small is zero") {
  CHECK(to_float16(65504) == 0x7bff);
  CHECK(to_float16(65519) == 0x7bff);
  CHECK(to_float16(65520) == 0x7c00);
  for (float size = 65536; size < 131072; size += 512) CHECK(to_float16(size) == 0x7c00);
  CHECK(to_float16(std::nextafter(131072.0F, 0.0F)) == 0x7c00);
  CHECK(to_float16(-1e10F) == 0xfc00);
  CHECK(to_float16(infinity) == 0x7c00);
  CHECK(to_float16(1e-10F) == 0);
  CHECK(to_float16(-0.0F) == 0x8000);
  CHECK(to_bfloat16(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(to_bfloat16(-infinity) == 0xff80);
}

TEST_CASE("every float8 is itself again, and what lies between two becomes the nearer one") {
  const auto check = [](auto of_bits, auto to_bits, std::uint8_t largest) {
    for (std::uint32_t bits = 0; bits <= 0xff; ++bits) {
      const auto byte = static_cast<std::uint8_t>(bits);
      const float value = of_bits(byte);
      CAPTURE(bits);
      if (std::isnan(value)) CHECK(std::isnan(of_bits(to_bits(value))));
      if (std::isfinite(value)) CHECK(to_bits(value) == byte);
      if ((byte & 0x7f) >= largest) continue;
      const auto next = static_cast<std::uint8_t>(byte + 1);
      const float middle = (value + of_bits(next)) / 2;
      CHECK(to_bits(middle) == (bits % 2 == 0 ? byte : next));
      CHECK(to_bits(std::nextafter(middle, value)) == byte);
      CHECK(to_bits(std::nextafter(middle, of_bits(next))) == next);
    }
  };
  check(of_float8_e4m3, to_float8_e4m3, 0x7e);
  check(of_float8_e5m2, to_float8_e5m2, 0x7b);
}

TEST_CASE("known numbers have their known bits") {
  CHECK(of_float16(0x3c00) == 1);
  CHECK(of_float16(0xc000) == -2);
  CHECK(of_float16(0x0001) == std::ldexp(1.0F, -24));
  CHECK(of_bfloat16(0x3f80) == 1);
  CHECK(to_float16(0.333251953125F) == 0x3555);
}

TEST_CASE("a float8 that would be too large is the largest one") {
  CHECK(of_float8_e4m3(0x7e) == 448);
  CHECK(to_float8_e4m3(1e9F) == 0x7e);
  CHECK(to_float8_e4m3(-infinity) == 0xfe);
  CHECK(of_float8_e5m2(0x7b) == 57344);
  CHECK(to_float8_e5m2(60000) == 0x7b);
  CHECK(to_float8_e5m2(infinity) == 0x7b);
  CHECK(std::isinf(of_float8_e5m2(0x7c)));
  CHECK(std::isnan(of_float8_e4m3(0x7f)));
  CHECK(to_float8_e4m3(1e-9F) == 0);
}

}  // namespace
}  // namespace muster::communicator
