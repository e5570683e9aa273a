#pragma once

#include <cstdint>

#include "nccl/doubles/communicator.h"

namespace nccl_double {

/// Brings a new communicator to the end that it comes to: 0, an error, or, when nothing comes
/// before its `stop`, 3.
int initialize(Communicator& communicator, const UniqueId& id);

/// The same for one whose ring is connected: the child of another.
int initialize_child(Communicator& child);

/// Connects the ring of the collectives, unless it is: waits until all ranks do. The same results.
int connect_data(Communicator& communicator);

/// Every rank's `size_bytes` bytes at `blocks + rank * size_bytes`; the own ones are there already.
Outcome all_gather(const Communicator& communicator, const Socket& next, const Socket& previous,
                   void* blocks, std::size_t size_bytes, const Cancel& cancel);

}  // namespace nccl_double
