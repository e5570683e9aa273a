#pragma once

// For operators and their tools: the namespaces, sessions, groups and waits of a server, as
// `musterctl` lists them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/config.h"
#include "muster/error.h"
#include "muster/process_group_options.h"
#include "muster/result.h"
#include "muster/store.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// A session: its process is connected, or may still reconnect.
struct SessionInfo {
  std::uint64_t id = 0;
  ProcessInfo process;
  bool connected = false;
  Duration silence{0};        ///< since its last byte
  std::uint32_t groups = 0;   ///< number of groups that it is a member of
  std::uint32_t waiting = 0;  ///< number of its calls that wait
};

struct GroupInfo {
  std::string name;
  std::uint64_t epoch = 0;  ///< 0: it forms
  int world_size = 0;
  int live = 0;  ///< live members; while it forms: ranks that have joined
  int candidates = 0;
  std::uint64_t round = 0;  ///< the round in which ranks wait; 0: none
  Duration round_age{0};
};

/// A round in which the ranks that have `called` it wait for the `missing` ones.
struct WaitingRound {
  std::uint64_t number = 0;
  std::string call;  ///< such as "broadcast root=1 codec=3"
  Duration age{0};   ///< since the first rank called it
  std::vector<RankRange> called;
  std::vector<RankRange> missing;
  int older_rounds = 0;  ///< 0: this round waits for `missing`. Else all have called it, but it
                         ///< waits behind so many open rounds, the oldest of which waits for them
};

/// A regroup without an outcome yet.
struct WaitingRegroup {
  int new_size = 0;       ///< 0: that of those who are there
  bool everyone = false;  ///< candidates, too
  int min_size = 0;
  Duration age{0};
  std::vector<RankRange> called;
  std::vector<RankRange> missing;  ///< also ranks without a candidate
};

/// A candidate: a join that waits for the next epoch.
struct WaitingCandidate {
  MemberInfo member;  ///< live, silent or away; its rank: the one it asked for
  int world_size = 0;
  bool standby = false;
  bool waits_for_holder = false;  ///< true: the holder of its rank is silent, but not lost yet;
                                  ///< false: it waits until the members regroup
  Duration age{0};
  Duration left{0};  ///< until its deadline
};

/// A rank that waits for an object.
struct WaitingReceiver {
  int rank = 0;
  int source = 0;
  std::uint64_t tag = 0;
  std::uint64_t sequence = 0;
  Duration age{0};
};

/// Who is in a group, who is missing, and who waits for whom.
struct GroupReport {
  std::string name;
  std::uint64_t epoch = 0;  ///< 0: it forms
  int world_size = 0;
  Duration age{0};                  ///< of the epoch; while it forms: since the first rank joined
  std::vector<MemberInfo> members;  ///< by rank; without `info`. While it forms: the ranks that are
                                    ///< there
  std::vector<RankRange> missing;   ///< while it forms: the ranks that are not
  std::vector<WaitingCandidate> candidates;
  std::optional<WaitingRound> round;       ///< a round without an outcome yet
  std::optional<WaitingRound> confirming;  ///< a barrier that has succeeded: the last rank out
                                           ///< waits until the missing ones have confirmed it
  std::optional<WaitingRegroup> regroup;
  std::vector<WaitingReceiver> receivers;
  std::optional<Error>
      failure;  ///< of the last round that failed: which ranks are missing, or called what
  Duration failure_age{0};
  std::string failure_call;  ///< as WaitingRound::call
};

/// A call that waits at the server.
struct WaiterInfo {
  std::uint64_t session = 0;
  ProcessInfo process;
  std::string operation;
  std::string target;  ///< the missing keys, or the group and what in it
  Duration age{0};
  Duration left{0};  ///< until its deadline
};

/// A namespace of the server.
struct NamespaceInfo {
  std::string name;  ///< empty: the default one
  std::uint64_t keys = 0;
  std::uint64_t memory_bytes = 0;  ///< of its keys, groups and waits
  std::uint32_t groups = 0;        ///< number of groups
  std::uint32_t sessions = 0;      ///< number of sessions, also of observers
  std::string made_by;             ///< the address whose client has made it, and whose limit of
                                   ///< namespaces it counts for; empty: the default one
  std::optional<Duration> idle;    ///< since its last session ended; none: it has sessions
};

/// Whom the server takes a store for.
struct WhoAmI {
  /// "TENANT/NAME", or "NAME", which is its own tenant; empty: the server asks nobody who he is.
  std::string identity;
  std::string tenant;      ///< to which its groups belong
  std::string namespaces;  ///< that its credential allows, as the server's file says it
  std::string not_after;   ///< no session begins later (UTC); empty: no end
  /// What the store may, by its role and its credential: names by commas, as in that file.
  std::string rights;
};

// All of these calls but the last two inspect the store's own namespace. The server answers them at
// once.
//
// errors   those of a store
// threads  as blocking calls of a store
// cost     one round trip per page of 4,096 entries, and one for the end

MUSTER_API Result<std::vector<SessionInfo>> inspect_sessions(Store& store,
                                                             Duration timeout = default_timeout);
MUSTER_API Result<std::vector<GroupInfo>> inspect_groups(Store& store,
                                                         Duration timeout = default_timeout);
MUSTER_API Result<std::vector<WaiterInfo>> inspect_waiters(Store& store,
                                                           Duration timeout = default_timeout);

/// errors  also not_found (no such group)
/// cost    one round trip
MUSTER_API Result<GroupReport> inspect_group(Store& store, std::string_view name,
                                             Duration timeout = default_timeout);

/// Lists the objects that groups hold, in streams and in rounds, as keys are listed.
///
/// prefix   beginning of their paths, which are such as "group/tp0/epoch/7/stream/0-1/tag/99/3" or
///          "group/tp0/epoch/7/round/12/rank/0"; empty: all
/// returns  the objects in no order; `ttl`: the time left until the group's data expiration
/// cost     one round trip per page of at most 4,096 objects
MUSTER_API Result<std::vector<KeyInfo>> inspect_objects(Store& store, std::string_view prefix = {},
                                                        Duration timeout = default_timeout);

/// Lists all namespaces of the server, by name. `Store::drop_namespace` removes one.
MUSTER_API Result<std::vector<NamespaceInfo>> inspect_namespaces(
    Store& store, Duration timeout = default_timeout);

/// Tells whom the server takes this store for, and what it may. Every store may ask.
///
/// cost  one round trip
MUSTER_API Result<WhoAmI> whoami(Store& store, Duration timeout = default_timeout);

MUSTER_END_NAMESPACE
