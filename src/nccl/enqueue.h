#pragma once

#include "communicator/operation_call.h"
#include "muster/nccl_functions.h"
#include "nccl/inside.h"

namespace muster::nccl_internal {

/// Calls the function of NCCL for `call`, or the sends and receives that replace it where this
/// NCCL does not have it.
///
/// inside   counts who is inside what may block; null: nothing may
/// returns  its ncclResult_t
int enqueue(const communicator::OperationCall& call, const nccl::Functions& nccl,
            nccl::Handle handle, int own_rank, int world_size, InsideCount* inside = nullptr);

/// The name of that function.
const char* function_of(communicator::Operation operation);

}  // namespace muster::nccl_internal
