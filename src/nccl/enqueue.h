#pragma once

#include "communicator/operation_call.h"
#include "muster/nccl_functions.h"

namespace muster::nccl_internal {

/// Calls the function of NCCL for `call`, or the sends and receives that replace it where this
/// NCCL does not have it.
///
/// returns  its ncclResult_t
int enqueue(const communicator::OperationCall& call, const nccl::Functions& nccl,
            nccl::Handle handle, int own_rank, int world_size);

/// The name of that function.
const char* function_of(communicator::Operation operation);

}  // namespace muster::nccl_internal
