#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "nccl/communicator_impl.h"

namespace muster::nccl_internal {

/// Runs one small collective on a communicator that no host has yet, on a thread of its own,
/// because NCCL or the driver may block it.
///
/// A failure does not end the communicator; the vote does.
///
/// meanwhile  is called repeatedly; its error ends the wait
/// errors     nccl (also of a call that did not return in time), no_device, timed_out, why the gate
///            is closed, those of `meanwhile`
Result<void> warm_up(const std::shared_ptr<Impl>& impl, std::chrono::steady_clock::time_point until,
                     const std::function<Result<void>()>& meanwhile);

}  // namespace muster::nccl_internal
