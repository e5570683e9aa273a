#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/communicator.h"

namespace muster::gloo_internal {

/// `to[i] = a[i] OP b[i]`; `to` may be `a` or `b`. An average is a sum so far.
using ReduceFunction = void (*)(void* to, const void* a, const void* b, std::size_t count);

/// Integers wrap around; floating-point types of two bytes and of one are rounded after each step.
ReduceFunction reduce_function_of(DataType type, ReduceOp operation);

/// `to[i] = from[i] * factor`, of floating-point types. The factor is rounded to the type, and so
/// is each product.
void multiply(void* to, const void* from, std::size_t count, DataType type, double factor);

/// Makes an average of the sum of `parts`; of integers its whole part.
void divide(void* sums, std::size_t count, DataType type, int parts);

}  // namespace muster::gloo_internal
