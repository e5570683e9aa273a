#pragma once

#include <cstdint>

#include "muster/tensor.h"

namespace muster::runtime {

// Of tensors in memory that this process can read, which `validate` has accepted. Elements are
// counted in row-major order: the last dimension's first.

/// Where the element with index 0 in each dimension is.
char* first_element(const TensorView& tensor);

/// Copies elements to contiguous memory, which may not overlap the tensor.
///
/// first, count  within the tensor
/// cost          of a contiguous tensor one memcpy, else one for each run of contiguous elements
void pack(void* to, const TensorView& from, std::uint64_t first, std::uint64_t count);

/// Copies contiguous memory to elements of a tensor; the reverse of `pack`.
void unpack(const TensorView& to, const void* from, std::uint64_t first, std::uint64_t count);

/// Whether two elements of the tensor may be at one place, so that it cannot be written.
///
/// Exact, but for tensors whose dimensions interleave without meeting (such as shape [2, 3],
/// strides [3, 2]): these are said to overlap.
bool overlaps_itself(const TensorView& tensor);

}  // namespace muster::runtime
