#pragma once

#include <cstddef>

#include "gloo/operations.h"
#include "muster/span.h"

namespace muster::gloo_internal {

// The operations in which the ranks' parts differ in size, as sends and receives of one tag.
// `counts` are the elements of each rank's part; Transfer::count is not used.

using Counts = Span<const std::size_t>;

void all_gather_v(const Transfer& transfer, Counts counts);
void reduce_scatter_v(const Transfer& transfer, Counts counts);
void gather_v(const Transfer& transfer, Counts counts);
void scatter_v(const Transfer& transfer, Counts counts);

}  // namespace muster::gloo_internal
