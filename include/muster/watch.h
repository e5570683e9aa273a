#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/config.h"
#include "muster/error.h"
#include "muster/inspected.h"
#include "muster/result.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// A group at a glance. Young rounds are not told of, and all times are points in time: as long as
/// nothing happens in a group it looks the same.
struct GroupView {
  using Time = std::chrono::system_clock::time_point;

  std::string name_space;  ///< empty: the default one
  std::string name;
  std::uint64_t epoch = 0;  ///< 0: it forms
  int world_size = 0;
  int candidates = 0;
  GroupCondition state = GroupCondition::working;
  Time since{};                                      ///< begin of the state
  std::vector<std::pair<RankCondition, int>> ranks;  ///< so many in a row, from rank 0 on
  std::vector<RankRange> waits_for;                  ///< whom others wait for
  std::vector<RankRange> waiting;                    ///< those others
  std::string call;                                  ///< in which they wait, or that has failed
  std::uint64_t round = 0;                           ///< its number; 0: it is of no round
  std::vector<MemberInfo> told;  ///< a few of those who are waited for, or were lost
  std::optional<Error> failure;  ///< of the epoch, or of its last round
};

/// Something that happened to a group, or happened once more.
struct WatchedEvent {
  std::uint64_t change = 0;  ///< ascends: its number changes when the event does
  std::string name_space;
  GroupView::Time at{};  ///< for the first time
  GroupEvent event;      ///< with its age at the moment at which it was told
};

/// How far a limit is used up.
struct LimitUse {
  std::string name;  ///< that of the option
  std::uint64_t used = 0;
  std::uint64_t limit = 0;
  std::string unit;  ///< "bytes", "sessions"
};

/// What there is in a server, at one moment.
struct Overview {
  std::uint64_t number = 0;  ///< ascends
  GroupView::Time now{};
  GroupView::Time started{};
  Duration known_for{0};  ///< of what has happened to groups
  /// By namespace and name. A group that has not changed is the same object as before.
  std::vector<std::shared_ptr<const GroupView>> groups;
  std::uint64_t groups_count = 0;  ///< more than there are in `groups`: others had no place
  std::vector<LimitUse> limits;
  std::uint64_t sessions = 0;
  std::uint64_t connections = 0;  ///< sessions that have one
  std::uint64_t keys = 0;
  std::uint64_t operations = 0;  ///< requests that have ended since the start
  /// How many requests have waited longer than the bound before and no longer than this one; of the
  /// last, which has none, longer than all.
  std::vector<std::pair<std::optional<Duration>, std::uint64_t>> waits;
  Duration waits_sum{0};
  std::uint64_t last_change = 0;  ///< of the events
};

/// Keys that begin alike.
struct KeyPrefix {
  std::string prefix;  ///< empty: that of keys without a "/"
  std::uint64_t keys = 0;
  std::uint64_t value_bytes = 0;
};

struct KeyPrefixes {
  std::vector<KeyPrefix> prefixes;  ///< those with most bytes first, 256 at most
  std::uint64_t other_keys = 0;     ///< with further prefixes
  std::uint64_t other_value_bytes = 0;
};

/// Looks at a server from within its process: what `musterctl` shows of it, to who may see
/// everything. A handle, which may outlive the server; copies are the same.
///
/// The server does nothing for those who do not look. For those who do it takes what it tells in
/// pieces, in its own turns, twice a second at most however many look, so that no turn is long. So
/// what is told of lists may mix two moments, as the pages of `musterctl` do.
///
/// wait_max  how long to wait for what is no older than a second; zero: what there is, or nothing
/// errors    of all calls: unavailable (it is not there yet: ask again in some 100 ms; or the
///           server is gone), not_found (no such namespace or group), too_large (more than 16 MiB)
/// threads   any
class MUSTER_API Watch {
 public:
  /// All groups at a glance, and the server's own numbers; the same object until there are newer
  /// ones.
  ///
  /// returns  null: there is none yet
  std::shared_ptr<const Overview> overview(Duration wait_max) const;
  /// What has happened to groups, also to those that are over, and changed after that; the last
  /// `count_max` of it, in the order of the changes.
  std::vector<std::shared_ptr<const WatchedEvent>> events(std::uint64_t after_change,
                                                          std::size_t count_max) const;

  Result<std::vector<NamespaceInfo>> namespaces(Duration wait_max) const;
  Result<std::vector<SessionInfo>> sessions(std::string_view name_space, Duration wait_max) const;
  Result<std::vector<GroupInfo>> groups(std::string_view name_space, Duration wait_max) const;
  /// Of all namespaces, each with the name of its own.
  Result<std::vector<std::pair<std::string, GroupInfo>>> all_groups(Duration wait_max) const;
  Result<std::vector<WaiterInfo>> waiters(std::string_view name_space, Duration wait_max) const;
  Result<GroupReport> group(std::string_view name_space, std::string_view name,
                            Duration wait_max) const;
  /// Those in which somebody waits, by name.
  Result<std::vector<GroupReport>> waiting_groups(std::string_view name_space,
                                                  Duration wait_max) const;
  /// As `inspect_history`.
  Result<History> history(std::string_view name_space, std::string_view group, std::uint64_t after,
                          Duration wait_max) const;
  /// slashes_max  1 to 4: up to which "/" keys have to be alike
  Result<KeyPrefixes> prefixes(std::string_view name_space, int slashes_max,
                               Duration wait_max) const;

  struct Source;
  explicit Watch(std::shared_ptr<Source> source);

 private:
  std::shared_ptr<Source> source_;
};

MUSTER_END_NAMESPACE
