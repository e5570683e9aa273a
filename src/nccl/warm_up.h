#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "nccl/communicator_impl.h"

namespace muster::nccl {

/// One small collective on a communicator that no host has yet, on a thread of its own: there NCCL
/// or the driver may hold it as long as they like.
///
/// What fails here is this rank's own trouble, and does not end the communicator: the vote does.
///
/// meanwhile  called again and again; its error ends this
/// errors     nccl (also of a call that did not return in time), no_device, timed_out, why the gate
///            is closed, those of `meanwhile`
Result<void> warm_up(const std::shared_ptr<NcclCommunicator::Impl>& impl,
                     std::chrono::steady_clock::time_point until,
                     const std::function<Result<void>()>& meanwhile);

}  // namespace muster::nccl
