#pragma once

#include <cstdint>
#include <string_view>

namespace muster::wire {

/// What a request asks for, as its number in the frame. The operations and their numbers stand in
/// wire/operation_table.h.
enum class Operation : std::uint16_t {};

/// The collectives that a round can be.
enum class Collective : std::uint8_t {
  barrier = 1,
  broadcast = 2,
  all_gather = 3,
  gather = 4,
  scatter = 5,
};
constexpr std::uint8_t first_number(Collective) { return 1; }
constexpr std::uint8_t last_number(Collective) { return 5; }

std::string_view name_of(Collective collective);

enum class EventKind : std::uint16_t {
  epoch_broken = 1,   ///< body: u64 epoch, error (rank_lost)
  rank_left = 2,      ///< body: u64 epoch, error (rank_left)
  session_ended = 3,  ///< body: u64 0, error, whether the session or only its connection is over
  interrupted = 4,    ///< body: u64 epoch, error (interrupted)
};

}  // namespace muster::wire
