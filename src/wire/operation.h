#pragma once

#include <cstdint>
#include <string_view>

namespace muster::wire {

/// What a request asks for. The numbers are part of the protocol and never change.
enum class Operation : std::uint16_t {
  set = 1,
  get = 2,
  take = 3,
  add = 4,
  compare_set = 5,
  append = 6,
  remove = 7,
  exists = 8,
  wait = 9,
  multi_get = 10,
  multi_set = 11,
  list = 12,
  touch = 13,

  join = 32,
  leave = 33,
  regroup = 34,
  members = 35,
  report_dead = 36,
  cancel_regroup = 37,

  collective = 48,
  cancel_round = 49,
  send = 50,
  receive = 51,
  expire_data = 52,
  recover = 53,

  status = 64,
  sessions = 65,
  groups = 66,
  inspect_group = 67,
  waiters = 68,
};

/// The operation's name as it is written here; empty for numbers that are none.
std::string_view name_of(Operation operation);

/// The collectives that a round can be.
enum class Collective : std::uint8_t {
  barrier = 1,
  broadcast = 2,
  all_gather = 3,
  gather = 4,
  scatter = 5,
};

std::string_view name_of(Collective collective);

enum class EventKind : std::uint16_t {
  epoch_broken = 1,   ///< body: u64 epoch, error (rank_lost)
  rank_left = 2,      ///< body: u64 epoch, error (rank_left)
  session_ended = 3,  ///< body: u64 0, error (session_expired, fenced, or why it was closed)
};

}  // namespace muster::wire
