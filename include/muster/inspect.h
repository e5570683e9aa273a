#pragma once

// For operators and their tools: what a server knows of its sessions, groups and waits. `musterctl
// why` is made of it.

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

/// A process that is connected, or whose session still stands.
struct SessionInfo {
  std::uint64_t id = 0;
  ProcessInfo process;
  bool connected = false;
  Duration silence{0};        ///< since its last byte
  std::uint32_t groups = 0;   ///< it is a member of
  std::uint32_t waiting = 0;  ///< its calls that wait
};

struct GroupInfo {
  std::string name;
  std::uint64_t epoch = 0;  ///< 0: it forms
  int world_size = 0;
  int live = 0;  ///< members; while it forms: ranks that wait
  int candidates = 0;
  std::uint64_t round = 0;  ///< that ranks wait in; 0: none
  Duration round_age{0};
};

/// A round in which these ranks wait for those.
struct WaitingRound {
  std::uint64_t number = 0;
  std::string call;  ///< such as "broadcast root=1 codec=3"
  Duration age{0};   ///< since the first rank called it
  std::vector<RankRange> called;
  std::vector<RankRange> missing;
  int older_rounds = 0;  ///< all who are needed came, but of so many open rounds before it the
                         ///< oldest waits for `missing`; 0: it does itself
};

/// A regroup that is not decided.
struct WaitingRegroup {
  int new_size = 0;
  int min_size = 0;
  Duration age{0};
  std::vector<RankRange> called;
  std::vector<RankRange> missing;  ///< also ranks for which no candidate is there
};

/// A join that waits beside the members.
struct WaitingCandidate {
  MemberInfo member;  ///< live, silent or away; its rank: the one it asked for
  int world_size = 0;
  bool standby = false;
  bool waits_for_holder = false;  ///< its rank's holder is silent, but not declared lost yet; else:
                                  ///< until the members regroup
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
  std::optional<WaitingRound> round;       ///< that is not decided
  std::optional<WaitingRound> confirming;  ///< a barrier that is decided: the rank that leaves it
                                           ///< last waits until these others have confirmed it
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

// All of them tell of the store's own namespace, and are answered at once, whatever waits.
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
/// prefix   of their paths, such as "group/tp0/epoch/7/stream/0-1/tag/99/3" and
///          "group/tp0/epoch/7/round/12/rank/0"; empty: all
/// returns  in no order; `ttl`: what is left until the group's data expiration
/// cost     one round trip per page of 4,096 objects or less
MUSTER_API Result<std::vector<KeyInfo>> inspect_objects(Store& store, std::string_view prefix = {},
                                                        Duration timeout = default_timeout);

MUSTER_END_NAMESPACE
