#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/groups/epoch.h"
#include "core/groups/group_origin.h"
#include "core/groups/join_rules.h"
#include "core/groups/joiners.h"
#include "core/groups/regroups/regroups.h"
#include "core/memory/chain.h"
#include "core/memory/tallied.h"
#include "core/session/tallies/waiting_line.h"
#include "core/session/watch/viewer.h"
#include "wire/reply.h"
#include "wire/request.h"

namespace muster::core {

struct GroupGlance;
struct GroupsState;

/// Who is in a group, who wants to be, and how its next epoch comes about. core/groups/join_rules.h
/// has the rules for those who want to be, core/groups/regroups/regroups.h the round of all members
/// that leads to the next epoch. group.cpp applies the rules, group_forming.cpp forms epochs,
/// group_inspect.cpp tells operators.
class Group {
 public:
  /// `account` has made it, and is charged for its rounds and streams.
  Group(GroupsState& state, Account& account, std::string name, GroupTenants tenants);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  void join(const RequestContext& context, const wire::Join& request);
  /// The answer to a join or a regroup that tells a member of the epoch that has formed.
  Answer formed_answer(Member& member, wire::Operation operation) const;
  void timed_out(JoinWait& wait);
  void abandoned(JoinWait& wait);
  /// The earliest deadline of a regroup has passed: it forms the next epoch, or fails.
  void regroup_deadline(const Member& decider, Duration timeout);

  // What happens to members and joiners; `work` sees to what follows.
  void lose(Member& member, LossCause cause, const Error* why = nullptr);
  void leave(Member& member);
  /// Something was heard of the session that a claimant waits for, or it is gone.
  void judge_again(Joiner& joiner);
  /// Takes one out of the group that no epoch takes in; its waits are the caller's to answer.
  std::unique_ptr<Joiner> give_up(Joiner& joiner);

  /// Does what is due: judges joiners, forms epochs, ends one whose last member has gone.
  void work();

  /// Whether all are there, and it only waits for this session to come back.
  bool awaits(const Session& session) const { return awaited_ == &session; }
  /// Of the current epoch; there is one.
  Regroups& regroups() { return formed_->regroups; }
  bool unused() const { return !formed_ && joiners_.empty(); }
  /// The epoch from which this one was regrouped; 0: none.
  std::uint64_t epoch_before() const { return formed_ ? formed_->before : 0; }
  const std::string& name() const { return name_; }
  /// Whether the session may know of it.
  bool is_known_to(const Viewer& viewer) const;
  GroupsState& state() const { return state_; }
  wire::GroupEntry summary() const;
  /// Whether somebody waits in it: in a round, a regroup, for an object, or to be let in.
  bool has_waiters() const;
  /// An encoded wire::InspectGroupReply.
  std::string report() const;
  /// Candidates in the order in which they came.
  std::vector<const Joiner*> candidates() const;

  const MadeGroup origin;
  bool dirty = false;  ///< GroupsState's: it has work to do

 private:
  friend GroupGlance glance_of(const Group& group);

  /// What a group has while it is formed; what it has while it forms is in core/groups/forming.h.
  struct Formed {
    Formed(Group& group, Epoch& its_epoch, std::uint64_t its_before)
        : epoch(its_epoch),
          before(its_before),
          regroups(group, epoch, group.joiners_.candidates()),
          among_formed(its_epoch.services.counted().group_states.formed) {}
    Epoch& epoch;
    std::uint64_t before;  ///< the epoch from which this one was regrouped; 0: none
    Regroups regroups;
    Tallied among_formed;
    std::optional<Tallied> among_broken;  ///< nothing: nobody was lost
    WaitingLine::Place broken_place;
  };

  // group.cpp
  JoinRules rules() const;
  void settle(Joiner& joiner);
  void admit(const RequestContext& context, const wire::Join& request);
  void attach(const RequestContext& context, Joiner& joiner);
  void fail(Joiner& joiner, const Error& error);
  Error timeout_error(const Joiner& joiner);
  void tell_of_earlier_epochs(Error& timeout) const;
  void tell_of_mismatch(Error& timeout, Instant since) const;

  // group_forming.cpp
  bool awaits_connection(const std::vector<Seat>& seats);
  bool blame_disconnected(Error& timeout) const;
  void form_epoch(const std::vector<Seat>& seats, const Member* decider);
  void supersede(Epoch& old, const std::vector<Seat>& seats, const Member* decider);
  void end_epoch();
  void answer_members(const std::vector<Seat>& seats,
                      const std::vector<std::unique_ptr<Joiner>>& joiners,
                      Chain<RegroupWait>& waits);
  void let_go(Epoch& old);

  GroupsState& state_;
  std::string name_;
  Joiners joiners_;
  std::optional<Formed> formed_;  ///< nothing: it forms
  const Session* awaited_ = nullptr;
  Timer awaited_until_{TimerKind::forming, this};
};

/// Keeps what happened to those who wanted to come in, for those who ask later.
///
/// process  whose join was refused; null: of another kind
void record(const Group& group, GroupEventKind what, const Error& why, const ProcessInfo* process);

}  // namespace muster::core
