#pragma once

// For RuntimeOptions::makers: communicators of the library muster-nccl.

#include <utility>

#include "muster/config.h"
#include "muster/nccl.h"
#include "muster/runtime.h"

MUSTER_BEGIN_NAMESPACE

/// Makes NCCL's communicators ("nccl", for "cuda").
inline CommunicatorMaker nccl_maker(nccl::Options options = {}) {
  return {"nccl", [options = std::move(options)](StatelessProcessGroup& group, int device,
                                                 Duration timeout) {
            nccl::Options own = options;
            own.timeout = timeout;
            return nccl::create(group, device, std::move(own));
          }};
}

MUSTER_END_NAMESPACE
