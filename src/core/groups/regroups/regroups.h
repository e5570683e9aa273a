#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/groups/abandoned_deadline.h"
#include "core/groups/epoch.h"
#include "core/groups/joiners.h"
#include "core/groups/regroups/reach.h"
#include "core/groups/regroups/seating.h"
#include "core/memory/chain.h"
#include "wire/reply.h"
#include "wire/request.h"

namespace muster::core {

class Group;

/// A parked regroup, or the join of a member whose epoch is not whole any more.
struct RegroupWait final : Wait {
  RegroupWait(Group& its_group, Member& its_member, Parked& its_parked);
  ~RegroupWait() override;

  void timed_out() override;
  void abandoned() override;
  std::string target() const override;

  Group& group;
  Member& member;
  ChainLink<RegroupWait> link{*this};
};

/// The regroups of one epoch: what its members call, and when the next epoch can form. The life of
/// one is told in core/groups/regroups/regroups.cpp.
class Regroups {
 public:
  Regroups(Group& group, Epoch& epoch, const Candidates& candidates);
  Regroups(const Regroups&) = delete;
  Regroups& operator=(const Regroups&) = delete;

  void regroup(const RequestContext& context, Member& member, const wire::Regroup& request);
  /// The join of a member whose epoch is not whole any more: it takes part in the regroup that the
  /// others call; if all of them join, in one to this size.
  void join(const RequestContext& context, Member& member, std::uint32_t world_size);
  void cancel(const Member& member, std::uint64_t attempt);
  /// A collective and a regroup may wait for each other: both are told.
  void collective(const RequestContext& context, Member& member,
                  const wire::CollectiveCall& request);
  void abandoned(RegroupWait& wait);
  /// The member is no longer live.
  void departed(const Member& member);
  /// A candidate has its place.
  void candidate_came() { reach_.changed(); }
  /// A candidate that no regroup has taken in is one no more.
  void candidate_gone(const Joiner& joiner);

  /// Fails the open regroup if its size can no longer be reached.
  void see_reach();
  /// All have come. Nothing: somebody is missing.
  std::optional<std::vector<Seat>> seats_if_due() const;
  /// The earliest deadline has passed. Nothing: the open regroup has failed, for all who called.
  std::optional<std::vector<Seat>> seats_at_deadline(const Member& decider, Duration timeout);
  /// The earliest, for which `Epoch::abandoned` is armed.
  const AbandonedDeadline& abandoned() const;
  /// The regroup that leads to the next epoch, as the client of `member` counts.
  std::uint64_t number_for(const Member& member) const {
    return attempt_.number - member.join_attempts;
  }
  /// Moves the waits of the open regroup to `waits`.
  void hand_over(Chain<RegroupWait>& waits) { waits.append_all(attempt_.waits); }

  /// The members, or else the ranks without a candidate, that a candidate waits for.
  void blame_missing(Error& timeout) const;
  /// Of the open regroup; nothing: none is open.
  std::optional<wire::RegroupEntry> entry() const;

 private:
  /// An undecided regroup.
  struct Attempt {
    std::uint64_t number = 1;
    bool open = false;
    Instant opened{};
    RegroupSizes sizes;
    std::uint32_t caller_count = 0;
    std::uint64_t least_next_round = 0;        ///< of the callers
    std::vector<AbandonedDeadline> abandoned;  ///< of live members
    Chain<RegroupWait> waits;
  };
  struct Decided {
    Failure failure;
    std::uint32_t to_come = 0;  ///< live members that have not called it
  };

  void call(const RequestContext& context, Member& member, const RegroupSizes& sizes);
  std::optional<Error> refusal(const RequestContext& context, const Member& member,
                               const RegroupSizes& sizes) const;
  void take_over(const RegroupSizes& sizes);
  bool differs(const RegroupSizes& sizes) const;
  void repeat(const RequestContext& context, Member& member, std::uint64_t number);
  void call_late(const RequestContext& context, Member& member);
  void skip_decided(Member& member);
  bool wait(const RequestContext& context, Member& member);
  void arm_abandoned();
  bool called(const Member& member) const { return member.next_attempt > attempt_.number; }
  std::uint64_t first_decided() const { return attempt_.number - decided_.size(); }
  void trim_decided();
  void fail(const Error& error);
  void close();
  Error conflict_error(const Member& caller, const std::string& called_instead) const;

  Group& group_;
  EngineServices& services_;
  Epoch& epoch_;
  const Seating seating_;
  Attempt attempt_;
  Reach reach_;                  // of attempt_
  std::deque<Decided> decided_;  // those before attempt_, consecutive
};

}  // namespace muster::core
