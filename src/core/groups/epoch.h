#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/groups/objects.h"
#include "core/groups/roster.h"
#include "core/groups/rounds/rounds.h"
#include "core/groups/stream.h"
#include "core/memory/tallied.h"

namespace muster::core {

class Group;

/// One time for which a group is formed: its members, their rounds and streams.
///
/// Life: forms -> whole; or a member leaves: its rounds fail, its streams run dry -> a member is
/// lost: broken, every call fails -> the members regroup, or the last of them goes: over. It stays
/// until no session refers to it, so that late callers are told why it is over.
struct Epoch {
  Epoch(EngineServices& its_services, Recorder recorder, Account& account, Objects& objects,
        const std::string& group_name, std::uint64_t number, Duration data_expiration);
  ~Epoch();
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;

  /// In the order of ranks; the session must not be a member yet.
  Member& add(Session& session, Payload info, HeldBytes record);
  /// After the last member.
  void complete();

  /// A live member is lost. Its session refers to the epoch no more when it is over.
  ///
  /// why  for those who ask later; null: the cause says it
  void lose(Member& member, LossCause cause, const Error* why);
  /// A live member leaves.
  void leave(Member& member);
  /// A live member ends what the others wait for, in rounds and of its objects. The epoch goes on.
  void interrupt(const RequestContext& context, Member& member, const wire::Interrupt& request);
  /// Nothing more can come of it: who waits gets stale_epoch, or is told that it was fenced.
  void close();

  /// Tells a session that comes back what it may have missed.
  void tell_again(const Member& member);
  void objects_expire();
  /// Who was lost so far, as those are told who call now.
  const Failure& loss() { return roster.loss(account.quota); }
  /// To all: everybody who was lost or, when nobody was, has left.
  void tell_who_is_gone();

  EngineServices& services;
  Account& account;  ///< of the group
  const Instant formed = services.now();
  Group* group = nullptr;  ///< whose current epoch it is; null: over
  Roster roster;
  // All three are of TimerKind::objects, which stands for everything that an epoch waits for.
  Timer expiry{TimerKind::objects, this};     ///< of the oldest object
  Timer telling{TimerKind::objects, this};    ///< of those who are gone since
  Timer abandoned{TimerKind::objects, this};  ///< deadline of a regroup that nobody waits for
  Shelf shelf;
  Rounds rounds;
  Streams streams;

 private:
  void record_loss(const Member& member, const Error* why) const;
  void tell_of_one_more(std::size_t count);
  void tell_all(const wire::Event& event);

  wire::Event interruption_;  // the last one; of epoch 0: there was none
  Tallied tallied_;
};

}  // namespace muster::core
