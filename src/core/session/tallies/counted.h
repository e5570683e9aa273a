#pragma once

#include <cstdint>

#include "core/session/counts.h"
#include "core/session/tallies/ages.h"
#include "core/session/tallies/tallies.h"
#include "core/session/tallies/waiting_line.h"

namespace muster::core {

/// Groups at the moment; all others form.
struct GroupStates {
  std::uint64_t formed = 0;  ///< also broken
  std::uint64_t broken = 0;  ///< a member was lost, and they have not regrouped yet
};

/// What the engine counts, in one place; each number where it changes.
struct Counted {
  Counts held;
  GroupStates group_states;
  Ages parked;                      ///< requests
  Ages open_rounds;                 ///< those that are not decided
  WaitingLine forming_groups;       ///< since somebody has wanted to join
  WaitingLine broken_groups;        ///< since the first loss
  std::uint64_t epochs_formed = 0;  ///< also the number of the last one
  bool is_draining = false;         ///< nobody begins a session any more
  Tallies tallies;
};

}  // namespace muster::core
