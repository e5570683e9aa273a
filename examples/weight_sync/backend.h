#pragma once

#include <functional>
#include <memory>

#include "muster/nccl.h"
#include "weight_sync/staging.h"
#ifdef WEIGHT_SYNC_GLOO
#include "muster/gloo.h"
#endif

// The difference between a machine with GPUs and one without: which communicator is made, and which
// memory it moves. Nothing else of this example knows.

namespace weight_sync {

struct Backend {
  std::function<muster::Result<muster::Communicator>(muster::StatelessProcessGroup& group,
                                                     muster::Duration timeout)>
      connect;
  std::function<muster::Result<std::unique_ptr<Staging>>(std::size_t bytes)> staging;
};

inline Backend on_cuda(int device) {
  return {[device](muster::StatelessProcessGroup& group, muster::Duration timeout) {
            muster::nccl::Options options;
            options.timeout = timeout;
            auto made = muster::nccl::create(group, device, options);
            // Attempts fail when others die in them; those before one that succeeds show no defect.
            if (made) muster::nccl::forgive_attempts();
            return made;
          },
          [device](std::size_t bytes) { return cuda_staging(device, bytes); }};
}

#ifdef WEIGHT_SYNC_GLOO
inline Backend on_cpu() {
  return {[](muster::StatelessProcessGroup& group, muster::Duration timeout) {
            muster::gloo::Options options;
            options.timeout = timeout;
            return muster::gloo::create(group, options);
          },
          [](std::size_t bytes) { return host_staging(bytes); }};
}
#endif

}  // namespace weight_sync
