#pragma once

#include <cstdint>

#include "nccl/doubles/communicator.h"

namespace nccl_double {

/// Brings a new communicator, in its own thread, to the end that it comes to.
void start_initialization(const CommunicatorPointer& communicator, const UniqueId& id);

/// The same for one whose ring is connected: the child of another.
void start_child(const CommunicatorPointer& child);

/// Every rank's `size_bytes` bytes at `blocks + rank * size_bytes`; the own ones are there already.
Outcome all_gather(const Communicator& communicator, const Socket& next, const Socket& previous,
                   void* blocks, std::size_t size_bytes, const Cancel& cancel);

}  // namespace nccl_double
