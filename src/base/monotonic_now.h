#pragma once

#include "base/time.h"

namespace muster::base {

/// The time since boot while the system ran (CLOCK_MONOTONIC). For the rims only.
Instant monotonic_now();

/// How long the calling thread has had a processor since it began.
Duration worked();

}  // namespace muster::base
