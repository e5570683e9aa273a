#pragma once

#include <cstdint>

#include "core/session/session.h"

namespace muster::core {

/// The deadline of a call of a round or regroup whose client gave up waiting. Such a call stays:
/// its deadline decides as if its rank still waited.
struct AbandonedDeadline {
  Instant at = base::far_future;
  Duration timeout{};  ///< of the call
  std::uint32_t rank = 0;
};

}  // namespace muster::core
