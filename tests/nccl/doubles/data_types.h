#pragma once

#include <cstddef>
#include <vector>

namespace nccl_double {

/// As nccl.h numbers them: int8, uint8, int32, uint32, int64, uint64, float16, float32, float64,
/// bfloat16, float8 of 4 and of 5 bits of exponent. 0: the double does not have it.
std::size_t size_of_type(int type);

enum Reduction : int { sum = 0, product = 1, maximum = 2, minimum = 3, average = 4 };
constexpr int reduction_count = 5;
/// In place of the handle of one that a host has made, since that is another one on each rank.
constexpr int scaled_sum = 5;

/// Multiplies elements by one of their type.
void scale(int type, const void* factor, std::vector<char>& elements);

/// Reduces `count` elements of every block into `to`, in the order of the blocks, so that all
/// ranks get the same bits.
void reduce(int reduction, int type, const std::vector<const char*>& blocks, std::size_t count,
            char* to);

}  // namespace nccl_double
