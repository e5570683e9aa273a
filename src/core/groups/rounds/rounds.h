#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/fifo.h"
#include "core/groups/rounds/round_answers.h"

namespace muster::core {

/// The collectives of one epoch: rounds.cpp takes the calls of ranks, rounds_outcome.cpp decides,
/// confirms and frees.
class Rounds {
 public:
  Rounds(EngineServices& services, Quota& quota, Roster& roster, Shelf& shelf)
      : services_(services),
        quota_(quota),
        roster_(roster),
        shelf_(shelf),
        answers_(services, quota, roster) {}
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;

  /// One rank's part of one round.
  ///
  /// conflict  why the round cannot be unless it is decided already; null: nothing
  /// returns   whether the call took part in an open round
  bool call(const RequestContext& context, Member& member, const wire::CollectiveCall& request,
            const Error* conflict);
  void cancel(const RequestContext& context, const Member& member, std::uint64_t number);
  /// Fails the round that somebody waits in, or the next one, which nobody has called. `member` is
  /// past it then, whether it had called it or not.
  ///
  /// returns  its number; 0: the request was refused
  std::uint64_t interrupt(const RequestContext& context, Member& member, const Error& why);
  void recover(const RequestContext& context, Member& member, std::uint64_t number,
               std::vector<std::uint64_t> next_sequences);
  void timed_out(RoundWait& wait);
  void acknowledged(Member& member, std::uint64_t number);
  /// `object` belongs to one of these rounds.
  void expired(Object& object);
  void abandoned(RoundWait& wait);
  /// The round's timer has.
  void fired(Round& round);

  /// The round that somebody waits in undecided; there is never more than one, since nobody can
  /// call the next before the last is decided.
  const Round* undecided() const;
  bool is_decided(std::uint64_t number) const;
  /// The decided barrier in which the hosting rank waits for confirmations; null: none.
  const Round* confirming() const;
  /// Who has to come before an undecided round is done, or to confirm one that is.
  Awaited awaited(const Round& round) const;
  struct LastFailure {
    Failure failure;  ///< none: no round has failed
    RoundCall call;
    Instant at{};
    bool is_last = false;  ///< no round has succeeded since
  };
  const LastFailure& last_failure() const { return last_failure_; }
  /// Ends the undecided round, if any, for all with one error that counts as its outcome.
  void decide_failed(Error error);
  /// Ends it with the epoch's own failure, which every later call gets as well.
  void break_off(const Failure& failure);
  /// A member is no longer live: nobody waits for its acknowledgements.
  void member_gone(const Member& member);
  /// The epoch is over: everybody who waits gets `failure`, fenced members what they are due.
  void close(const Failure& failure);

 private:
  // rounds.cpp
  Round* find(std::uint64_t number) const;
  void repeat(const RequestContext& context, Member& member, std::uint64_t number);
  void call_late(const RequestContext& context, Member& member, Round& round,
                 const wire::CollectiveCall& request);
  std::unique_ptr<Round> make_round(const RequestContext& context, std::uint64_t number,
                                    RoundCall call);
  bool arrive(const RequestContext& context, Member& member, Round& round,
              const wire::CollectiveCall& request, const Error* conflict);
  RoundWait* wait(const RequestContext& context, Member& member, Round& round);
  bool is_admitted(const Round& round) const;
  bool completes(const Round& round, const Member& member) const;

  // rounds_outcome.cpp
  void fail(Round& round, Error error);
  void finish(Round& round);
  void settle(Round& round);
  void confirm(Round& round);
  void free_acknowledged();

  EngineServices& services_;
  Quota& quota_;
  Roster& roster_;
  Shelf& shelf_;
  RoundAnswers answers_;
  base::Fifo<std::unique_ptr<Round>> open_;  // consecutive numbers: freed from the front
  LastFailure last_failure_;
  std::uint64_t interrupted_ = 0;  // the last round that was
};

}  // namespace muster::core
