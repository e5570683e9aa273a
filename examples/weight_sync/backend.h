#pragma once

#include <memory>

#include "muster/nccl_communicator.h"
#include "weight_sync/staging.h"
#ifdef WEIGHT_SYNC_GLOO
#include "muster/gloo_communicator.h"
#endif

// What differs between a machine with GPUs and one without: whose communicator it is, and where the
// bytes lie that it moves. Nothing else of this example knows.

namespace weight_sync {

struct OnCuda {
  using Communicator = muster::NcclCommunicator;

  int device = 0;

  muster::Result<Communicator> connect(muster::StatelessProcessGroup& group,
                                       muster::Duration timeout) const {
    muster::NcclOptions options;
    options.timeout = timeout;
    return Communicator::create(group, device, options);
  }
  muster::Result<std::unique_ptr<Staging>> staging(std::size_t bytes) const {
    return cuda_staging(device, bytes);
  }
};

#ifdef WEIGHT_SYNC_GLOO
struct OnCpu {
  using Communicator = muster::GlooCommunicator;

  static muster::Result<Communicator> connect(muster::StatelessProcessGroup& group,
                                              muster::Duration timeout) {
    muster::GlooOptions options;
    options.timeout = timeout;
    return Communicator::create(group, options);
  }
  static muster::Result<std::unique_ptr<Staging>> staging(std::size_t bytes) {
    return host_staging(bytes);
  }
};
#endif

}  // namespace weight_sync
