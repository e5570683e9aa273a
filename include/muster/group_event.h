#pragma once

#include <cstdint>
#include <string_view>

#include "muster/config.h"

MUSTER_BEGIN_NAMESPACE

/// What can happen to a group. The numbers are part of the protocol.
enum class GroupEventKind : std::uint8_t {
  formed = 1,          ///< its first epoch, or the first one after the last member had gone
  regrouped = 2,       ///< its members formed the next epoch
  rank_lost = 3,       ///< the epoch is broken
  rank_left = 4,       ///< in order
  round_failed = 5,    ///< a collective timed out, was cancelled, or ranks called different ones
  join_refused = 6,    ///< somebody could not come in
  join_timed_out = 7,  ///< the deadline of somebody who waited to come in has passed
  ended = 8,           ///< its last member has gone
};

/// "rank_lost", as in `musterctl --json events`.
MUSTER_API std::string_view name_of(GroupEventKind kind);

MUSTER_END_NAMESPACE
