#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/groups/objects.h"
#include "core/groups/roster.h"
#include "wire/operation.h"
#include "wire/reply.h"
#include "wire/request.h"

// The collectives of one epoch. A round's life cycle is told in core/groups/round.cpp.

namespace muster::core {

class Rounds;
struct Round;

/// What all ranks of a round must agree on.
struct RoundCall {
  wire::Collective collective = wire::Collective::barrier;
  std::uint32_t root = 0;
  std::uint32_t codec = 0;
  friend bool operator==(const RoundCall&, const RoundCall&) = default;
};

/// Whether the root's value alone decides it.
bool from_one(wire::Collective collective);

/// "barrier", "broadcast root=2 codec=1".
std::string text_of(const RoundCall& call);

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
  Link<RoundWait> link{*this};
};

struct Round {
  Round(Rounds& its_rounds, std::uint64_t its_number, RoundCall its_call)
      : rounds(its_rounds), number(its_number), call(its_call) {}

  enum class State : std::uint8_t { open, done, failed };

  /// A rank that came when the round was done, and called another thing.
  struct Differing {
    std::uint32_t rank = 0;
    Failure mismatch;  ///< what it gets in place of the outcome, however often it asks
  };

  Rounds& rounds;
  std::uint64_t number;
  RoundCall call;
  State state = State::open;
  bool source_called = false;              ///< broadcast, scatter: its value is here
  std::uint32_t arrived_count = 0;         ///< members that have called it while it was open
  std::uint32_t unacknowledged_count = 0;  ///< live members that have not got their outcome
  std::uint64_t value_bytes = 0;
  std::vector<Object*> values;  ///< by rank: gathered until it is decided; scattered from then on
  Object* body = nullptr;       ///< broadcast: the value; gathered: the encoded RoundReply
  Failure failure;
  std::vector<Differing> differing;
  Chain<RoundWait> waits;
  Timer timer{TimerKind::round, this};
  Instant opened{};
  Instant log_next{};
  Instant abandoned_deadline = base::far_future;  ///< the earliest of those who gave up waiting
  Duration abandoned_timeout{};
  std::uint32_t abandoned_by = 0;
  HeldBytes record;
};

class Rounds {
 public:
  Rounds(Host& host, Quota& quota, Roster& roster, Shelf& shelf)
      : host_(host), quota_(quota), roster_(roster), shelf_(shelf) {}
  ~Rounds();
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;

  /// One rank's part of one round.
  ///
  /// conflict  why the round cannot be unless it is decided already; null: nothing
  /// returns   whether the call took part in an open round
  bool call(const RequestContext& context, Member& member, const wire::CollectiveCall& request,
            const Error* conflict);
  void cancel(const RequestContext& context, const Member& member, std::uint64_t number);
  void recover(const RequestContext& context, Member& member, std::uint64_t number,
               std::vector<std::uint64_t> next_sequences);
  void timed_out(RoundWait& wait);
  void acknowledged(Member& member, std::uint64_t number);
  void expired(Object& object);
  void abandoned(RoundWait& wait);
  static void fired(Round& round) { round.rounds.on_timer(round); }

  /// The round that somebody waits in undecided; there is never more than one, since nobody can
  /// call the next before the last is decided.
  const Round* undecided() const;
  bool is_decided(std::uint64_t number) const;
  /// The decided barrier in which the hosting rank waits for confirmations; null: none.
  const Round* confirming() const;
  struct Awaited {
    std::vector<RankRange> ranks;
    std::uint32_t older_rounds = 0;  ///< the oldest of so many open ones waits for them; 0: it does
  };
  /// Who has to come before an undecided round is done, or to confirm one that is.
  Awaited awaited(const Round& round) const;
  struct LastFailure {
    Failure failure;  ///< none: no round has failed
    RoundCall call;
    Instant at{};
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

  std::uint64_t count() const { return open_.size(); }

 private:
  // round.cpp
  Round* find(std::uint64_t number) const;
  std::optional<Error> refusal(const RequestContext& context, const Member& member,
                               const wire::CollectiveCall& request) const;
  void repeat(const RequestContext& context, Member& member, std::uint64_t number);
  void call_late(const RequestContext& context, Member& member, Round& round,
                 const wire::CollectiveCall& request);
  std::unique_ptr<Round> make_round(const RequestContext& context, std::uint64_t number,
                                    RoundCall call);
  bool arrive(const RequestContext& context, Member& member, Round& round,
              const wire::CollectiveCall& request, const Error* conflict);
  bool store_values(const RequestContext& context, Round& round, const Member& member,
                    const wire::CollectiveCall& request);
  void withdraw_values(Round& round, const Member& member);
  bool wait(const RequestContext& context, Member& member, Round& round);
  bool admitted(const Round& round) const;
  bool completes(const Round& round, const Member& member) const;

  // round_outcome.cpp
  void fail_open(Round& round, Error error);
  void finish(Round& round);
  void settle(Round& round);
  void confirm(Round& round);
  bool withheld(const Round& round, const Member& member) const;
  std::uint32_t unconfirmed_count(const Round& round) const;
  void drop_value(Round& round, std::uint32_t rank);
  void drop_objects(Round& round);
  void free_acknowledged();
  void on_timer(Round& round);
  void log_wait(const Round& round) const;

  // round_answers.cpp
  void answer(RoundWait& wait);
  const Failure* failure_for(const Round& round, const Member& member) const;
  Answer outcome(const Round& round, const Member& member, Duration elapsed) const;
  Answer recovered(const Round& round, const Member& member,
                   const std::vector<std::uint64_t>& next_sequences) const;
  Error expired_error(const Round& round) const;
  std::vector<RankRange> missing(const Round& round) const;
  Error missing_error(const Round& round, const Member& decider, Duration timeout) const;
  Error mismatch_error(const Round& round, const Member& caller, std::string called) const;
  void blame_for_oldest(Error& error) const;
  Error round_error(ErrorCode code, const Round& round) const;
  std::vector<RankRange> unconfirmed(const Round& round) const;
  std::string gathered_body(const Round& round) const;

  Host& host_;
  Quota& quota_;
  Roster& roster_;
  Shelf& shelf_;
  std::deque<std::unique_ptr<Round>> open_;  // consecutive numbers: freed from the front
  LastFailure last_failure_;
};

}  // namespace muster::core
