#pragma once

// For RuntimeOptions::makers: communicators of the library muster-gloo.

#include <utility>

#include "muster/config.h"
#include "muster/gloo.h"
#include "muster/runtime.h"

MUSTER_BEGIN_NAMESPACE

/// Makes Gloo's communicators ("gloo", for "cpu").
inline CommunicatorMaker gloo_maker(gloo::Options options = {}) {
  return {"gloo", [options = std::move(options)](StatelessProcessGroup& group, int /*device*/,
                                                 Duration timeout) {
            gloo::Options own = options;
            own.timeout = timeout;
            return gloo::create(group, std::move(own));
          }};
}

MUSTER_END_NAMESPACE
