#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/chain.h"
#include "core/epoch.h"
#include "wire/reply.h"
#include "wire/request.h"

// Who is in a group, who wants to be, and how its next epoch comes about. group.cpp has the join
// rules, group_forming.cpp how epochs form, group_regroup.cpp the round of all members that leads
// to the next one, group_inspect.cpp what operators are told.

namespace muster::core {

struct GroupRoom;
struct Joiner;

/// A parked join of somebody who is not a member.
struct JoinWait final : Wait {
  JoinWait(Joiner& its_joiner, Parked& its_parked);
  ~JoinWait() override;

  void timed_out() override;
  void abandoned() override;
  std::string target() const override;

  Joiner& joiner;
  Link<JoinWait> link{*this};
};

/// A parked regroup, or the join of a member whose epoch is not whole any more.
struct RegroupWait final : Wait {
  RegroupWait(Group& its_group, Member& its_member, Parked& its_parked)
      : Wait(its_parked), group(its_group), member(its_member) {}

  void timed_out() override;
  void abandoned() override;
  std::string target() const override;

  Group& group;
  Member& member;
  Link<RegroupWait> link{*this};
};

/// A session that wants to be in a group; it may ask several times, as the same rank.
struct Joiner {
  Joiner(Group& its_group, Session& its_session, const wire::Join& request)
      : group(&its_group),
        session(its_session),
        rank(request.rank),
        world_size(request.world_size),
        data_expiration(request.data_expiration),
        standby(request.standby) {}
  ~Joiner();
  Joiner(const Joiner&) = delete;
  Joiner& operator=(const Joiner&) = delete;

  enum class Place : std::uint8_t {
    none,       ///< to be judged by the join rules
    claimant,   ///< its rank's holder is silent: it waits until that one is heard or gone
    seat,       ///< of a group that forms
    candidate,  ///< for the next regroup
  };

  Group* group;  ///< null: it has got its answer
  Session& session;
  std::uint32_t rank;
  std::uint32_t world_size;
  Duration data_expiration;
  bool standby;
  Place place = Place::none;
  std::uint64_t arrival = 0;
  Session* holder = nullptr;  ///< of a claimant
  Payload info;
  HeldBytes record;
  Chain<JoinWait> waits;
  Link<Joiner> claim{*this};  ///< among those who wait for the holder
};

/// Not heard of for some heartbeats.
bool is_silent(const Host& host, const Session& session);
/// A member as lists show it.
wire::MemberEntry entry_of(const Host& host, const Member& member);

class Group {
 public:
  Group(GroupRoom& room, std::string name);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // Requests.
  void join(const RequestContext& context, const wire::Join& request);
  void regroup(const RequestContext& context, Member& member, const wire::Regroup& request);
  void cancel_regroup(const Member& member, std::uint64_t attempt);
  /// Tells a member again what it is in the epoch.
  void answer_formed(const RequestContext& context, const Member& member) const;
  /// Both are told when a collective and a regroup wait for each other.
  void collective(const RequestContext& context, Member& member,
                  const wire::CollectiveCall& request);
  void timed_out(JoinWait& wait);
  void timed_out(RegroupWait& wait);
  void abandoned(JoinWait& wait);
  void abandoned(RegroupWait& wait);

  // What happens to members and joiners; `work` sees to what follows.
  void lose(Member& member, LossCause cause);
  void leave(Member& member);
  /// Something was heard of the session that a claimant waits for, or it is gone.
  void judge_again(Joiner& joiner);
  void forget(Joiner& joiner);
  void abandoned_regroup_due();

  /// Does what is due: judges joiners, forms epochs, ends one whose last member has gone.
  void work();

  /// Null while it forms.
  Epoch* epoch() const { return epoch_; }
  bool unused() const { return epoch_ == nullptr && joiners_.empty(); }
  /// The one from which this one was regrouped; 0: it was not.
  std::uint64_t epoch_before() const { return epoch_before_; }
  const std::string& name() const { return name_; }
  GroupRoom& room() const { return room_; }
  wire::GroupEntry summary() const;
  void inspect(const RequestContext& context);
  /// Candidates in the order in which they came.
  std::vector<const Joiner*> candidates() const;

  bool dirty = false;  ///< the room's: it has work to do

 private:
  struct Verdict;
  /// Somebody who will be a member of the next epoch.
  struct Seat {
    std::uint32_t rank = 0;
    Session* session = nullptr;
    Member* survivor = nullptr;  ///< of the epoch before; or
    Joiner* joiner = nullptr;
  };
  /// An undecided regroup.
  struct Attempt {
    std::uint64_t number = 1;
    bool open = false;
    Instant opened{};
    std::uint32_t new_size = 0;
    std::uint32_t min_size = 0;
    std::uint32_t caller_count = 0;
    std::uint64_t least_next_round = 0;  ///< of the callers
    Duration abandoned_timeout{};        ///< of the call for which Epoch::abandoned is armed
    std::uint32_t abandoned_by = 0;
    Chain<RegroupWait> waits;
  };
  struct DecidedAttempt {
    Failure failure;
    std::uint32_t to_come = 0;  ///< live members that have not called it
  };

  // group_rules.cpp: the join rules, and what errors say about them.
  Verdict judge(const Session& session, const wire::Join& request);
  Verdict judge_forming(const wire::Join& request);
  Verdict judge_formed(const Session& session, const wire::Join& request);
  Verdict judge_holder(Session& holder, std::uint32_t rank);
  void settle(Joiner& joiner);
  Error error(ErrorCode code, std::string detail) const;
  Error mismatch_error(std::uint64_t expected, std::uint64_t actual, std::string what) const;
  Error in_use_error(const Session& holder, std::uint32_t rank) const;
  Error closed_error() const;
  Error timeout_error(const Joiner& joiner);
  const std::vector<RankRange>& never_joined();

  // group.cpp: joiners and their places.
  void admit(const RequestContext& context, const wire::Join& request);
  void attach(const RequestContext& context, Joiner& joiner);
  void take_place(Joiner& joiner, Joiner::Place place);
  void leave_place(Joiner& joiner);
  std::unique_ptr<Joiner> take(Joiner& joiner);
  void fail(Joiner& joiner, const Error& error);
  Joiner* joiner_of(const Session& session) const;

  // group_forming.cpp
  void form_from_joiners();
  void form_epoch(const std::vector<Seat>& seats, const Member* decider);
  void supersede(Epoch& old, const std::vector<Seat>& seats, const Member* decider);
  void end_epoch();
  void answer_members(const std::vector<Seat>& seats,
                      const std::vector<std::unique_ptr<Joiner>>& joiners,
                      Chain<RegroupWait>& waits);
  Answer formed_answer(const Member& member) const;
  void unlink_older(Session& session);
  void let_go(Epoch& old);

  // group_inspect.cpp
  void inspect_forming(wire::InspectGroupReply& reply) const;
  void inspect_formed(wire::InspectGroupReply& reply, std::deque<std::string>& calls);
  wire::CandidateEntry candidate_entry(const Joiner& joiner) const;
  wire::RegroupEntry regroup_entry();

  // group_regroup.cpp
  void call_regroup(const RequestContext& context, Member& member, std::uint32_t new_size,
                    std::uint32_t min_size);
  std::optional<Error> regroup_refusal(const RequestContext& context, const Member& member,
                                       std::uint32_t new_size, std::uint32_t min_size) const;
  void repeat_regroup(const RequestContext& context, Member& member, std::uint64_t number);
  void call_late(const RequestContext& context, Member& member);
  bool wait(const RequestContext& context, Member& member);
  bool called(const Member& member) const { return member.next_attempt > attempt_.number; }
  std::uint64_t first_decided() const { return attempt_.number - decided_.size(); }
  void trim_decided();
  void fail_attempt(const Error& error);
  void close_attempt();
  void reset_attempts();
  void departed(const Member& member);
  bool regroup_if_due();
  void regroup_deadline(const Member& decider, Duration timeout);
  std::vector<Seat> survivors(bool only_callers);
  void place_candidates(std::vector<Seat>& seats);
  Error conflict_error(const Member& caller, const std::string& called_instead) const;
  std::vector<std::uint32_t> ranks_without_candidate();
  void blame_without_candidate(Error& late);
  Error regroup_timeout(const Member& decider, Duration timeout);

  GroupRoom& room_;
  std::string name_;
  Epoch* epoch_ = nullptr;  ///< null: it forms

  std::map<std::uint64_t, std::unique_ptr<Joiner>> joiners_;  // by arrival
  std::unordered_map<const Session*, Joiner*> joiner_of_;
  std::map<std::uint64_t, Joiner*> unjudged_;         // by arrival
  std::map<std::uint32_t, Joiner*> rank_candidates_;  // without standby, by rank
  std::map<std::uint64_t, Joiner*> standbys_;         // by arrival

  // While it forms.
  std::uint32_t world_size_ = 0;
  Duration data_expiration_{};              ///< of the epochs too
  std::map<std::uint32_t, Joiner*> seats_;  ///< by rank; null: joined and gave up at its deadline
  std::uint32_t seated_count_ = 0;          ///< without those that gave up
  std::vector<RankRange> never_joined_;     ///< valid unless empty

  // While it is formed.
  std::uint64_t epoch_before_ = 0;
  Attempt attempt_;
  std::deque<DecidedAttempt> decided_;  // those before attempt_, consecutive
};

/// All groups of one namespace, and what they share.
struct GroupRoom {
  GroupRoom(Host& its_host, Quota& its_quota) : host(its_host), quota(its_quota) {}
  ~GroupRoom();

  void touch(Group& group);
  /// Until nothing is left to do: groups work, what nobody needs goes.
  void work();
  void list(const RequestContext& context, const wire::Groups& request) const;
  void inspect(const RequestContext& context, const wire::InspectGroup& request) const;
  /// The claimants that wait for a sign of `session` are judged again.
  void reconsider(const Session& session);

  Host& host;
  Quota& quota;
  Objects objects;
  std::unordered_map<std::uint64_t, std::unique_ptr<Epoch>> epochs;
  std::unordered_map<std::string, std::unique_ptr<Group>> groups;
  std::unordered_map<const Session*, Chain<Joiner>> claimants;  ///< by holder
  std::deque<Group*> dirty;
  std::vector<std::uint64_t> over;  ///< epochs that nobody may refer to any more
  std::uint64_t last_arrival = 0;
};

}  // namespace muster::core
