#pragma once

#include <cstdint>

namespace muster::communicator {

// Conversions of the two floating-point types of one byte. They round to nearest, ties to even.
// What is too large, or infinite, becomes the largest number, as with NCCL.

/// A sign, 4 bits of exponent, 3 of fraction: up to 448, without infinity.
float of_float8_e4m3(std::uint8_t bits);
std::uint8_t to_float8_e4m3(float value);
/// A sign, 5 bits of exponent, 2 of fraction: up to 57,344, with infinity.
float of_float8_e5m2(std::uint8_t bits);
std::uint8_t to_float8_e5m2(float value);

}  // namespace muster::communicator
