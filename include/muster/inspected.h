#pragma once

// What a server tells operators: of sessions, groups and waits. The calls of muster/inspect.h ask
// for it by a store, and muster/watch.h for a server of one's own.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/config.h"
#include "muster/error.h"
#include "muster/group_event.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

enum class MemberState {
  live,
  silent,  ///< nothing was received from it for more than 3 heartbeats
  lost,
  left,
  candidate,  ///< not a member of this epoch: waits for the next one
  away,       ///< its connection has ended; it is lost unless it reconnects within the grace
};

struct MemberInfo {
  int rank = 0;
  MemberState state = MemberState::live;
  ProcessInfo process;
  Duration silence{0};  ///< since the server received its last byte
  std::string info;     ///< GroupOptions::info
  /// Its rank in the epoch that has regrouped into this one; -1: it was not there.
  int previous_rank = -1;
};

/// A session: its process is connected, or may still reconnect.
struct SessionInfo {
  std::uint64_t id = 0;
  ProcessInfo process;
  bool connected = false;
  Duration silence{0};        ///< since its last byte
  std::uint32_t groups = 0;   ///< number of groups that it is a member of
  std::uint32_t waiting = 0;  ///< number of its calls that wait
  /// The id of the key that its client has proved last, 16 hexadecimal digits as in the server's
  /// log. Empty: it has no key, or the server is older.
  std::string key_id;
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
  std::string failure_call;       ///< as WaitingRound::call
  std::vector<RankRange> unheld;  ///< members whose processes hold no handle of the group, and ask
                                  ///< for none: they leave after the grace
};

/// What a group is at, at a glance.
enum class GroupCondition : std::uint8_t {
  forming,     ///< its ranks are not all there yet
  working,     ///< nobody waits, or not for long
  waiting,     ///< a round or a receive has been open for more than a second
  regrouping,  ///< some of its members have called regroup
  failed,      ///< a rank was lost, or the last round has failed
};

/// What a rank of a group is at, at a glance.
enum class RankCondition : std::uint8_t {
  live,
  waiting,  ///< for others
  missing,  ///< others wait for it
  silent,   ///< nothing was received from it for more than 3 heartbeats
  away,     ///< its connection has ended; it is lost unless it reconnects within the grace
  lost,
  left,
  absent,  ///< of a group that forms: nobody is there as it
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

/// One thing that happened, or the same several times in a row.
struct GroupEvent {
  std::uint64_t serial = 0;  ///< ascends with time, of all groups of the server
  Duration age{0};           ///< since it happened, for the first time
  Duration lasted{0};        ///< from the first time to the last
  std::uint64_t count = 1;   ///< how often it happened; of rank_lost and rank_left: how many ranks
  GroupEventKind what = GroupEventKind::formed;
  std::string group;
  std::uint64_t epoch = 0;     ///< 0: none had formed
  int world_size = 0;          ///< of the epoch, or that is to be of one that forms
  std::optional<Error> error;  ///< who was lost and why, who was missing; none: nothing to say
  std::optional<ProcessInfo> process;  ///< of join_refused: who was
};

/// What a server remembers of a namespace.
struct History {
  std::vector<GroupEvent> events;  ///< the oldest first
  std::uint64_t forgotten = 0;     ///< so many older ones, for which there was no place any more
  Duration known_for{0};  ///< since the server's start: it knows nothing of what was before
};

MUSTER_END_NAMESPACE
