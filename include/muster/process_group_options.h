#pragma once

// What a StatelessProcessGroup is told and what it tells: muster/process_group.h includes this.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/config.h"
#include "muster/error.h"
#include "muster/store_options.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

struct GroupOptions {
  /// After this long an object or broadcast that nobody fetched is dropped; above zero. The same
  /// on all ranks.
  Duration data_expiration{std::chrono::hours(1)};
  /// Of joining, and of every call that is given `default_timeout`; above zero.
  Duration timeout{std::chrono::seconds(300)};
  /// When the group is whole: wait as a candidate for its next epoch, and take any rank there. The
  /// rank that is given must not be held; give one beyond the members', and a larger world_size.
  bool standby = false;
  /// Shown to the other members, e.g. an address of this rank's own server; at most
  /// `limits().value_bytes_max`.
  std::string info;
  /// Told, as handlers are, when ranks of this group are lost (rank_lost) or have left
  /// (rank_left): once of each rank, with why and how it was noticed.
  std::function<void(const Error& error)> on_loss;
};

/// Who serves the store of a group that is made by host and port.
enum class HostServer {
  automatic,  ///< rank 0; if its address is in use and the group was named, it joins there
  always,     ///< rank 0, or `address_in_use`
  never,      ///< somebody else, such as `musterd`
};

/// Of the `create` by host and port: those of the group, the store and the server.
struct HostedGroupOptions : GroupOptions {
  /// Empty: "default". A named group may join a server that runs already.
  std::string name;
  HostServer host_server = HostServer::automatic;
  /// Rank 0 may serve on an address that is not loopback.
  bool allow_unauthenticated = false;
  /// A listening socket for rank 0 to serve on, so that the process that chose the port also
  /// holds it; -1: none. Taken over, also when `create` fails.
  int listening_socket = -1;
  StoreOptions store;
};

enum class MemberState {
  live,
  silent,  ///< not heard for more than 3 heartbeats
  lost,
  left,
  candidate,  ///< no member of this epoch: waits for the next one
  away,       ///< its connection has ended; it is lost unless it comes back within the grace
};

struct MemberInfo {
  int rank = 0;
  MemberState state = MemberState::live;
  ProcessInfo process;
  Duration silence{0};  ///< since its last byte
  std::string info;     ///< as in its GroupOptions
};

/// Made by `StatelessProcessGroup::watch`; hears as long as it lives. When it goes, its handler
/// does not run any more.
class MUSTER_API GroupWatch {
 public:
  GroupWatch();  ///< of nothing
  ~GroupWatch();
  GroupWatch(GroupWatch&&) noexcept;
  GroupWatch& operator=(GroupWatch&&) noexcept;

  class Place;
  explicit GroupWatch(std::shared_ptr<Place> place);

 private:
  std::shared_ptr<Place> place_;
};

/// What this handle has done so far in its epoch.
struct GroupCounters {
  std::uint64_t rounds = 0;  ///< collectives that were decided
  std::uint64_t objects_sent = 0;
  std::uint64_t objects_received = 0;
};

/// An encoded object that was received.
struct ReceivedBytes {
  std::string bytes;
  std::uint64_t sequence = 0;  ///< from 0 per source and tag
};

/// An object that was received.
template <class T>
struct Received {
  T object;
  std::uint64_t sequence = 0;  ///< from 0 per source and tag
};

/// What a barrier says beside that it is passed.
struct BarrierResult {
  /// At the rank that leaves last: those that did not confirm by the deadline.
  std::vector<RankRange> unconfirmed;
};

struct RegroupOptions {
  /// 0: the survivors, renumbered densely in their old order. Else survivors keep their ranks
  /// and candidates fill the rest.
  int new_size = 0;
  /// When the deadline comes and so many are there: they form the group, the absent are fenced.
  /// 0: all live members must come.
  int min_size = 0;
};

/// What became of a collective whose outcome was not known.
struct RecoveredRound {
  /// 0: no collective was in doubt.
  std::uint64_t round = 0;
  /// Whether the call reached the server. If not: call it again.
  bool called = false;
  std::optional<Error> error;       ///< as it was decided
  std::vector<std::string> values;  ///< as it was decided: encoded objects, by rank
};

MUSTER_END_NAMESPACE
