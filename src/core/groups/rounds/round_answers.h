#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/groups/rounds/round.h"

namespace muster::core {

/// For whom a round waits.
struct Awaited {
  std::vector<RankRange> ranks;
  std::uint32_t older_rounds = 0;  ///< the oldest of so many open ones waits for them; 0: it does
};

/// What the ranks of an epoch are told of their rounds: outcomes, and errors that name who has not
/// come or not confirmed.
class RoundAnswers {
 public:
  RoundAnswers(EngineServices& services, Quota& quota, const Roster& roster)
      : services_(services), quota_(quota), roster_(roster) {}

  /// What a decided round means for one member.
  Answer outcome(const Round& round, const Member& member, Duration elapsed) const;
  /// The same for one who waits for it.
  Answer outcome(const RoundWait& wait) const;
  /// The same as the answer of a `recover`.
  Answer recovered(const Round& round, const Member& member,
                   const std::vector<std::uint64_t>& next_sequences) const;

  /// Whether the member leaves a barrier last, and others have yet to confirm.
  bool is_withheld(const Round& round, const Member& member) const {
    return round.state == Round::State::done && member.rank == roster_.hosting_rank &&
           unconfirmed_count(round) != 0;
  }
  /// How many members have yet to confirm a barrier before the rank that leaves last may go.
  std::uint32_t unconfirmed_count(const Round& round) const {
    if (round.call.collective != wire::Collective::barrier) return 0;
    const Member& host = roster_.members[roster_.hosting_rank];
    const bool counts_host = host.live() && host.acknowledged_round < round.number;
    return round.unacknowledged_count - (counts_host ? 1 : 0);
  }
  std::vector<RankRange> unconfirmed(const Round& round) const;
  /// Who has to call an open round before it is done.
  std::vector<RankRange> missing(const Round& round) const;
  /// Those for whom the round `oldest` is kept: who has not called it, or else not acknowledged.
  void blame_for(std::uint64_t oldest, Error& error) const;

  Error error(ErrorCode code, const Round& round) const;
  /// The deadline of `decider`, who had given `timeout`, has passed.
  Error late_error(const Round& round, const Awaited& awaited, const Member& decider,
                   Duration timeout) const;
  /// `caller` has called something else than the ranks before it.
  Error mismatch_error(const Round& round, const Member& caller, std::string called) const;

 private:
  Error expired_error(const Round& round) const;
  void spend_on_looking() const;

  EngineServices& services_;
  Quota& quota_;
  const Roster& roster_;
};

}  // namespace muster::core
