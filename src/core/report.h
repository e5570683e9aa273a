#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>

#include "core/keys/guest_request.h"
#include "core/session/snapshot.h"
#include "core/session/tallies/counted.h"

namespace muster::core {

/// What only guests ask, in the order of the variant.
inline constexpr auto guest_request_names = std::to_array<std::string_view>({
    "await_keys",
    "await_release",
    "release",
    "check_keys",
    "count_keys",
    "push",
    "pop",
    "count_queued",
});
static_assert(guest_request_names.size() == std::variant_size_v<GuestRequest>);
using GuestCounts = std::array<std::uint64_t, guest_request_names.size()>;

/// All that the engine has counted, at one moment. Plain data of some 10 KiB, for a thread that is
/// not that of the engine.
struct Report {
  Snapshot snapshot;
  Tallies tallies;
  GuestCounts guest_requests{};
  GroupStates group_states;
  std::uint64_t epochs_formed = 0;
  std::uint64_t rounds_undecided = 0;
  // Zero when there is none; to within a quarter of a second.
  Duration oldest_round{};    ///< that is not decided
  Duration oldest_wait{};     ///< of the parked requests
  Duration oldest_forming{};  ///< of the groups, since somebody has wanted to join it
  Duration oldest_broken{};   ///< of the groups, since its first loss
  Duration uptime{};
  Duration paused{};  ///< of it the server did not run
  bool is_draining = false;
  std::uint64_t memory_reserve_used_bytes = 0;
  std::uint64_t memory_reserve_bytes = 0;
  std::uint64_t reply_bytes = 0;  ///< of the memory in use
  std::uint64_t kept_bytes = 0;   ///< free, and not given back to the system
  std::uint64_t history_bytes_max = 0;
};

}  // namespace muster::core
