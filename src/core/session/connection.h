#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace muster::core {

using base::Instant;

/// The rim's; never used twice, never 0. Its last bits are its place, a small number that no other
/// connection has at the same time: what is kept for each connection is found there.
using ConnectionId = std::uint64_t;
inline constexpr int connection_place_bits = 24;
constexpr std::size_t place_of(ConnectionId connection) {
  return connection & ((ConnectionId{1} << connection_place_bits) - 1);
}

enum class DisconnectCause : std::uint8_t {
  closed,  ///< FIN or RST, or by the server after a breach: the session has the grace to come back
  lost,    ///< anything else: the session has its whole timeout
};

}  // namespace muster::core
