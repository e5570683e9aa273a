#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/communicator.h"

namespace muster::gloo_internal {

/// `to[i] = a[i] OP b[i]`; `to` may be `a` or `b`. An average is a sum so far.
using Reduction = void (*)(void* to, const void* a, const void* b, std::size_t count);

/// Integers wrap around; floating-point types of two bytes and of one are rounded after each step.
Reduction reduction_of(DataType type, ReduceOp operation);

/// Makes an average of the sum of `parts`; of integers its whole part.
void divide(void* sums, std::size_t count, DataType type, int parts);

// Conversions of the two 16-bit floating-point types. They round to nearest, ties to even.

float of_float16(std::uint16_t bits);
std::uint16_t to_float16(float value);
float of_bfloat16(std::uint16_t bits);
std::uint16_t to_bfloat16(float value);

}  // namespace muster::gloo_internal
