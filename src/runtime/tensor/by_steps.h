#pragma once

#include <cstdint>
#include <vector>

#include "muster/tensor.h"
#include "runtime/tensor/call.h"

// Collectives on host tensors by steps, after the ranks have agreed. Elements are numbered in
// row-major order.

namespace muster::runtime {

/// The elements of all ranks, one behind the other, as they came in one step.
using Sources = std::vector<const void*>;

/// Where the parts of the last step lie.
///
/// errors  protocol_error (a part has not so many bytes)
Result<Sources> parts_of(const TensorCall& call, const Steps& steps, std::uint64_t bytes);

/// Combines elements `first..first+count` of all ranks into those of the tensor. Where parts are
/// shared, each rank combines a slice, and a step more gives them to all.
///
/// sources  those elements, in the last step's parts
Result<void> combine_sources(TensorCall& call, Steps& steps, const Sources& sources,
                             const TensorView& tensor, std::uint64_t first, std::uint64_t count,
                             ReduceOp operation);

Result<void> all_reduce_by(TensorCall& call, Steps& steps, const TensorView& tensor,
                           ReduceOp operation);
Result<void> broadcast_by(TensorCall& call, Steps& steps, const TensorView& tensor, int root);
/// all  of each rank, with its own memory; this rank's is filled, too
Result<void> all_gather_by(TensorCall& call, Steps& steps, const TensorView& tensor,
                           const std::vector<Tensor>& all);
Result<void> reduce_scatter_by(TensorCall& call, Steps& steps, const TensorView& send,
                               const TensorView& receive, ReduceOp operation);

/// Combines elements of all ranks into the tensor, on this rank alone.
void combine_here(const Sources& sources, const TensorView& tensor, std::uint64_t first,
                  std::uint64_t count, ReduceOp operation);

}  // namespace muster::runtime
