#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/groups/abandoned_deadline.h"
#include "core/groups/rounds/round_call.h"
#include "core/groups/rounds/round_values.h"
#include "core/memory/tallied.h"
#include "core/session/tallies/ages.h"

namespace muster::core {

class Rounds;
struct Round;

/// The part of a parked `recover` that a collective call does not have.
struct Recovery {
  std::vector<std::uint64_t> next_sequences;  ///< of the streams that it asked for
  HeldBytes record;
};

/// A parked collective call, or a `recover` that waits for a round's outcome.
struct RoundWait final : Wait {
  RoundWait(Round& its_round, Member& its_member, Parked& its_parked)
      : Wait(its_parked), round(its_round), member(its_member) {}

  void timed_out() override;
  void abandoned() override;
  std::string target() const override;

  Round& round;
  Member& member;
  std::unique_ptr<Recovery> recovery;  ///< null: a collective call
  ChainLink<RoundWait> link{*this};
};

/// One collective. Its life cycle is told in core/groups/rounds/rounds.cpp.
struct Round {
  /// `count`: of the rounds that the server holds.
  Round(Rounds& its_rounds, Shelf& shelf, std::uint64_t its_number, RoundCall its_call,
        std::uint64_t& count)
      : rounds(its_rounds), number(its_number), call(its_call), values(shelf), tallied(count) {}

  enum class State : std::uint8_t { open, done, failed };

  /// A rank that came when the round was done, and called another thing.
  struct Differing {
    std::uint32_t rank = 0;
    Failure mismatch;  ///< what it gets in place of the outcome, however often it asks
  };

  bool is_open() const { return state == State::open; }

  Rounds& rounds;
  std::uint64_t number;
  RoundCall call;
  State state = State::open;
  bool source_called = false;              ///< broadcast, scatter: its value is here
  std::uint32_t arrived_count = 0;         ///< members that have called it while it was open
  std::uint32_t unacknowledged_count = 0;  ///< live members that have not got their outcome
  RoundValues values;
  Failure failure;
  std::vector<Differing> differing;
  std::vector<std::uint32_t> passed_by;  ///< ranks that interrupted the epoch and never called it
  Chain<RoundWait> waits;
  Timer timer{TimerKind::round, this};
  Instant opened{};
  Instant log_next{};
  AbandonedDeadline abandoned;  ///< the earliest
  HeldBytes record;
  Tallied tallied;
  Ages::Place place;  ///< among those of all groups that are not decided
};

}  // namespace muster::core
