#pragma once

#include "communicator/operation_call.h"
#include "muster/nccl_functions.h"
#include "nccl/inside.h"

namespace muster::nccl_internal {

/// What came of a call.
struct Enqueued {
  int result = 0;             ///< an ncclResult_t
  const char* function = "";  ///< of NCCL, that gave it
};

/// Calls the function of NCCL for `call`, or the sends and receives that replace it where this
/// NCCL does not have it. For a scaled sum an op is made, and destroyed.
///
/// inside  counts who is inside what may block; null: nothing may
Enqueued enqueue(const communicator::OperationCall& call, const nccl::Functions& nccl,
                 nccl::Handle handle, int own_rank, int world_size, InsideCount* inside = nullptr);

/// The ncclDataType_t.
int number_of(DataType type);

/// The name of that function.
const char* function_of(communicator::Operation operation);

}  // namespace muster::nccl_internal
