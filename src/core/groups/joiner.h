#pragma once

#include <cstdint>
#include <string>

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
  std::string target() const override;

  Joiner& joiner;
  Link<JoinWait> link{*this};
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
  Link<Joiner> claim{*this};  ///< among those who wait for the holder
};

}  // namespace muster::core
