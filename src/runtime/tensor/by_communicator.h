#pragma once

#include <vector>

#include "muster/tensor.h"
#include "runtime/tensor/call.h"

// Collectives on tensors by Gloo or NCCL themselves, after the ranks have agreed.

namespace muster::runtime {

/// Whether Gloo combines such elements as the other ways do: in their own type, and with a nan that
/// stays one. The others go to all ranks, which combine them.
bool gloo_combines(Dtype dtype, ReduceOp operation);

/// Why NCCL does not combine such elements.
std::optional<std::string> refusal_of_nccl(Dtype dtype, ReduceOp operation);

Result<void> all_reduce_by(TensorCall& call, TensorWay way, const TensorView& tensor,
                           ReduceOp operation);
Result<void> broadcast_by(TensorCall& call, TensorWay way, const TensorView& tensor, int root);
/// all  of each rank, with its own memory
Result<void> all_gather_by_nccl(TensorCall& call, const TensorView& tensor,
                                const std::vector<Tensor>& all);
Result<void> reduce_scatter_by(TensorCall& call, TensorWay way, const TensorView& send,
                               const TensorView& receive, ReduceOp operation);

}  // namespace muster::runtime
