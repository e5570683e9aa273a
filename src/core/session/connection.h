#pragma once

#include <cstdint>

#include "base/time.h"

namespace muster::core {

using base::Instant;

using ConnectionId = std::uint64_t;  ///< the rim's; never used twice, never 0

enum class DisconnectCause : std::uint8_t {
  closed,  ///< FIN or RST, or by the server after a breach: the session has the grace to come back
  lost,    ///< anything else: the session has its whole timeout
};

}  // namespace muster::core
