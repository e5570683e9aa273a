#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/groups/forming.h"
#include "core/memory/chain.h"
#include "core/memory/held_bytes.h"
#include "core/session/session.h"
#include "wire/request.h"

namespace muster::core {

class Group;
struct Joiner;

/// A parked join of a session that is not a member.
struct JoinWait final : Wait {
  JoinWait(Joiner& its_joiner, Parked& its_parked);
  ~JoinWait() override;

  void timed_out() override;
  void abandoned() override;
  void resumed() override;
  std::string target() const override;

  Joiner& joiner;
  ChainLink<JoinWait> link{*this};
};

/// A session that wants to be in a group. It may ask several times, as the same rank.
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
  ChainLink<Joiner> claim{*this};  ///< among those who wait for the holder
};

/// The joiners that wait for a regroup to take them in.
struct Candidates {
  void add(Joiner& joiner);
  void remove(const Joiner& joiner);
  std::size_t count() const { return by_rank.size() + standbys.size(); }

  std::map<std::uint32_t, Joiner*> by_rank;   ///< those that want this rank and no other
  std::map<std::uint64_t, Joiner*> standbys;  ///< those that take any, by arrival
};

/// The joiners that wait for the silent holder of their rank, by holder; of all groups.
using Claimants = std::unordered_map<const Session*, Chain<Joiner>>;

/// All who want to be in one group, and the place that each has: in a seat of the group that forms,
/// among the candidates, or among the claimants. A joiner without a place is to be judged.
class Joiners {
 public:
  explicit Joiners(Claimants& claimants) : claimants_(claimants) {}

  /// A joiner that came just now. It is to be judged.
  Joiner& admit(std::unique_ptr<Joiner> joiner);
  /// Gives a joiner without a place one; `holder`: of a claimant.
  void place(Joiner& joiner, Joiner::Place place, Session* holder = nullptr);
  /// Takes the joiner's place away; it is to be judged.
  void judge_again(Joiner& joiner);
  /// A seat whose joiner's deadline has passed: the joiner has no place, and is not judged.
  void give_up(Joiner& joiner);
  /// Takes the joiner out; its waits are the caller's to answer.
  std::unique_ptr<Joiner> take(Joiner& joiner);

  /// Null: the session does not wait to join.
  Joiner* of(const Session& session) const;
  /// The one that came first; null: all have their places.
  Joiner* unjudged() const { return unjudged_.empty() ? nullptr : unjudged_.begin()->second; }
  bool empty() const { return all_.empty(); }
  /// By arrival.
  const std::map<std::uint64_t, std::unique_ptr<Joiner>>& all() const { return all_; }
  const Candidates& candidates() const { return candidates_; }
  const Forming& forming() const { return forming_; }
  Forming& forming() { return forming_; }

 private:
  void leave_place(Joiner& joiner);

  Claimants& claimants_;
  std::map<std::uint64_t, std::unique_ptr<Joiner>> all_;
  std::unordered_map<const Session*, Joiner*> of_session_;
  std::map<std::uint64_t, Joiner*> unjudged_;
  Candidates candidates_;
  Forming forming_;
};

}  // namespace muster::core
