#pragma once

#include <cstdint>

namespace muster::communicator {

// Conversions of the two 16-bit floating-point types. They round to nearest, ties to even.

float of_float16(std::uint16_t bits);
std::uint16_t to_float16(float value);
float of_bfloat16(std::uint16_t bits);
std::uint16_t to_bfloat16(float value);

}  // namespace muster::communicator
