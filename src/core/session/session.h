#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "auth/identity.h"
#include "core/memory/chain.h"
#include "core/session/accounts.h"
#include "core/session/answers.h"
#include "core/session/clock.h"
#include "core/session/connection.h"
#include "core/session/tallies/ages.h"
#include "core/session/timers.h"
#include "core/session/wait.h"
#include "core/session/waiting.h"
#include "wire/hello.h"
#include "wire/operation.h"

// What the rooms of core share: a client's session, its requests that wait, and the replies that
// it has not acknowledged yet. A session belongs to one namespace and outlives its connections.

namespace muster::core {

struct NameSpace;  // table and groups of one namespace: core/name_space.h
struct Member;     // a session's part in an epoch: core/groups/roster.h
struct Session;
struct KeyExtras;  // core/keys/table_state.h

/// What a parked request takes, with its place in the session's map and in its room; measured by
/// tests/unit/core/memory_test.cpp.
inline constexpr std::uint64_t parked_bytes = 256;

/// A request that waits for its answer. Stands in its session's map; survives reconnects.
struct Parked {
  Parked(Session& session, std::uint64_t request_id, wire::Operation operation);
  ~Parked();

  Session& session;
  std::uint64_t request_id;
  wire::Operation operation;
  Instant received{};
  Duration timeout{};  ///< as the client gave it
  Timer timer;         ///< TimerKind::parked
  Ages::Place place;
  std::unique_ptr<Wait> wait;

  Instant deadline() const { return timer.at(); }
};

/// The keys that go with a session. When it ends all of them are gone at once, and are removed in
/// pieces.
struct BoundKeys : std::enable_shared_from_this<BoundKeys> {
  Chain<KeyExtras> keys;
  std::uint64_t count = 0;
  bool are_gone = false;
};

/// A guest was notified of an item in the queue of a key. The item is reserved for the guest until
/// its next request has been carried out, its session ends, or the grace is over.
struct Offer {
  explicit Offer(Session& guest) : end(TimerKind::offer, &guest) {}
  void withdraw() {
    at_key.leave();
    end.disarm();
  }

  KeyExtras* key = nullptr;  ///< as long as it is linked
  ChainLink<Offer> at_key{*this};
  Timer end;
};

using ParkedByRequest = std::unordered_map<std::uint64_t, Parked>;

/// When a session was heard of, by which key, and when it expires.
struct SessionLiveness {
  explicit SessionLiveness(Session& session) : expiry(TimerKind::session, &session) {}

  Moment heard;           ///< last byte
  std::uint64_t key = 0;  ///< the id of the key that its client has proved last; 0: it has none
  Moment disconnected;
  DisconnectCause disconnect_cause = DisconnectCause::closed;
  Timer expiry;  ///< re-armed when it fires early: a byte only moves `heard`
};

/// The requests of a session that wait for their answers, and the answers that its client has not
/// acknowledged.
struct SessionRequests {
  std::uint64_t last_id = 0;       ///< the greatest; 0: the session is blank, and holds nothing
  std::uint64_t last_id_here = 0;  ///< the greatest on the session's connection

  ParkedByRequest parked;
  WaitingSessions* waiting = nullptr;  ///< of the session's namespace
  bool is_listed_as_waiting = false;   ///< there
  Answers unacknowledged;
  std::uint64_t cached_bytes = 0;         ///< of the heads above, without the next two
  std::uint32_t cached_parked_count = 0;  ///< of those above that were parked
  std::uint32_t cached_taken_count = 0;   ///< of takes and pops that were not
};

/// What a session has in the table of its namespace.
struct SessionKeys {
  std::shared_ptr<BoundKeys> bound;     ///< null: there were none
  std::unique_ptr<Offer> offer;         ///< null: there was none
  std::uint64_t places_of_several = 0;  ///< that the waits for several keys have at them
};

/// Whether a session is for operating the server, and so finds places and memory that no other
/// session takes. It has no keys, waits for nothing and is in no group: its role has no right for
/// that. Without credentials any client could claim the right `admin` by TCP, so only a user at a
/// Unix socket counts then.
///
/// is_of_own_user  see Hello
inline bool operates(wire::Role role, const auth::Grant* grant, bool is_of_own_user) {
  if (role == wire::Role::client) return false;
  return is_of_own_user || (grant != nullptr && grant->rights.has(wire::Right::admin));
}

struct Session {
  /// `account` is its unit's in the namespace.
  Session(std::uint64_t id, NameSpace& name_space, Account& account);
  ~Session();

  /// From now on it may what its role and the grant allow.
  void set_grant(std::shared_ptr<const auth::Grant> its_grant);
  /// Whether its grant limits how many requests it may send in a second.
  bool counts_requests() const {
    return grant != nullptr && grant->limits.requests_per_second != 0;
  }
  /// Whom its groups belong to; empty: nobody was asked.
  std::string_view tenant() const {
    return grant != nullptr ? std::string_view(grant->identity.tenant) : std::string_view();
  }
  /// Whether it operates the server, and so what belongs to other tenants, too.
  bool is_admin() const {
    return grant != nullptr ? grant->rights.has(wire::Right::admin)
                            : rights.has(wire::Right::admin);
  }
  bool is_operator() const { return operates(role, grant.get(), is_of_own_user); }
  /// Whether it may know what belongs to that tenant.
  bool may_see(std::string_view other_tenant) const {
    return other_tenant == tenant() || is_admin();
  }
  /// Whether it may know what there is in all namespaces together.
  bool may_see_all() const { return grant == nullptr || is_admin(); }
  /// Whether it may know that there is a namespace of that name.
  bool may_see_name_space(std::string_view name) const {
    return may_see_all() || grant->namespaces.allows(name);
  }

  std::uint64_t id;
  NameSpace& name_space;
  Account& account;
  wire::ResumeToken token;
  wire::Role role = wire::Role::client;
  auth::Rights rights;          ///< of its role and of its grant
  bool is_guest = false;        ///< its client speaks another protocol; see Hello
  bool is_of_own_user = false;  ///< see Hello
  /// What its client may who has proved who he is; null: nobody was asked.
  std::shared_ptr<const auth::Grant> grant;
  ProcessInfo process;
  ConnectionId connection = 0;  ///< 0: disconnected
  SessionLiveness liveness{*this};
  bool has_echoed = false;  ///< its client knows the token: it does not speak blindly
  SessionRequests requests;

  std::vector<Member*> members;  ///< one per epoch that it has not moved on from
  std::uint32_t claimants = 0;   ///< joiners that wait for a sign of life of this session
  SessionKeys keys;
  ChainLink<Session> of_process{*this};  ///< among the sessions of its process
  ChainLink<Session> of_unit{*this};     ///< among those of its unit
  std::optional<LossCause> ended;        ///< how; its memory stays until the next event
};

/// Its process, and its identity if it has one: who has done something, for the log.
std::string who_is(const Session& session);

/// Whether it may know of the process that hosts the server, as of members of that tenant.
inline bool may_know_host(const Session& session, std::string_view hosting_tenant) {
  if (session.grant == nullptr || session.is_admin()) return true;
  const auth::Rights rights = session.rights;
  return hosting_tenant == session.tenant() &&
         (rights.has(wire::Right::join) || rights.has(wire::Right::observe));
}

/// One request in hand: everything about it but its body.
struct RequestContext {
  Session& session;
  std::uint64_t request_id;
  wire::Operation operation;
  Duration timeout;
  Instant now;
};

}  // namespace muster::core
