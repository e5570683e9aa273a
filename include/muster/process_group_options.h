#pragma once

// Options and results of a StatelessProcessGroup. Included by muster/process_group.h.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/config.h"
#include "muster/error.h"
#include "muster/inspected.h"
#include "muster/result.h"
#include "muster/store_options.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

struct GroupOptions {
  /// The server drops objects and broadcasts of this age that nobody has received. Above zero, and
  /// the same on all ranks.
  Duration data_expiration{std::chrono::hours(1)};
  /// Timeout of joining, and of every call with `default_timeout`; above zero.
  Duration timeout{std::chrono::seconds(300)};
  /// If the group is complete: wait as a candidate for its next epoch, and accept any rank there.
  /// Give a rank that no member holds, such as one above all members', and a larger world_size.
  bool standby = false;
  /// Text that the other members can read, such as the address of this rank's own server; at most
  /// `limits().value_bytes_max` bytes.
  std::string info;
  /// Tenants whose processes may be in the group beside those of this one, at most 8, where the
  /// server has credentials (docs/security.md); others are refused. With its own each rank names
  /// the same tenants, in any order: who trains names who serves, and the other way round. Empty:
  /// all ranks are of one tenant. A server without credentials asks nobody, and ignores them.
  std::vector<std::string> other_tenants;
  /// Called, where handlers run, when ranks of this group are lost (rank_lost): once for each rank,
  /// with the cause. As every handler it may run after the group and the store were destroyed, so
  /// it must own what it uses.
  std::function<void(const Error& error)> on_loss;
  /// The same when ranks have left of their own will (rank_left).
  std::function<void(const Error& error)> on_leave;
};

/// Which process runs the server of a group that is created by host and port.
enum class HostServer {
  automatic,  ///< rank 0; if its address is in use and the group has a name, it joins there
  always,     ///< rank 0, or `address_in_use`
  never,      ///< another process, such as `musterd`
};

/// Options of the `create` by host and port: for the group, the store and the server.
struct HostedGroupOptions : GroupOptions {
  /// Name of the group; empty: "default". A group with a name may join a server that runs already.
  std::string name;
  HostServer host_server = HostServer::automatic;
  /// Allows rank 0 to listen on an address that is not loopback, without authentication. With a key
  /// (`store.credential_file`, or that of the environment) that is not needed: then rank 0 serves
  /// those alone who have the same one, by TLS. At a Unix socket it serves its user and root, and
  /// with this everybody.
  bool allow_unauthenticated = false;
  /// A listening socket for rank 0, so that the process that chose the port also holds it; -1:
  /// none. `create` takes ownership, also when it fails.
  int listening_socket = -1;
  StoreOptions store;
};

/// Created by `StatelessProcessGroup::watch`. Its handler runs only while it exists: when the
/// destructor has returned, the handler does not run any more.
class MUSTER_API GroupWatch {
 public:
  GroupWatch();  ///< watches nothing
  ~GroupWatch();
  GroupWatch(GroupWatch&&) noexcept;
  GroupWatch& operator=(GroupWatch&&) noexcept;

  class Subscription;
  explicit GroupWatch(std::shared_ptr<Subscription> subscription);

 private:
  std::shared_ptr<Subscription> subscription_;
};

/// What this handle has done in its epoch so far.
struct GroupCounters {
  std::uint64_t rounds = 0;  ///< collectives that have an outcome
  std::uint64_t objects_sent = 0;
  std::uint64_t objects_received = 0;
};

/// An encoded object that was received.
struct ReceivedBytes {
  std::string bytes;
  std::uint64_t sequence = 0;  ///< from 0 per source and tag
};

/// An encoded object that has come and is not received yet: the server keeps it, and the next call
/// asks for it again, unless it is accepted. Until this is over, other receives of its source and
/// tag are `busy`. For what decodes before it receives.
class MUSTER_API Delivery {
 public:
  ~Delivery();  ///< refuses it, if it was not accepted
  Delivery(Delivery&&) noexcept;
  Delivery& operator=(Delivery&&) noexcept;

  std::string_view bytes() const;
  StreamPosition position() const;

  /// It is received. Afterwards this object is as after a move.
  ///
  /// threads  any
  ReceivedBytes accept();

  class Impl;
  explicit Delivery(std::shared_ptr<Impl> impl);

 private:
  std::shared_ptr<Impl> impl_;
};

/// An object that was received.
template <class T>
struct Received {
  T object;
  std::uint64_t sequence = 0;  ///< from 0 per source and tag
};

/// The result of a barrier that has succeeded.
struct BarrierResult {
  /// At the last rank out: the ranks that did not confirm by the deadline.
  std::vector<RankRange> unconfirmed;
};

struct RegroupOptions {
  /// 0: the survivors, renumbered from 0 in their old order. Else the size of the next epoch:
  /// survivors keep their ranks, and candidates get the others.
  int new_size = 0;
  /// All who are there when the last live member calls it, whatever their number: the live members,
  /// and the candidates. Live members keep their order; a candidate gets the rank that it asked
  /// for, if that is free, and ranks that stay free are closed up. Candidates without
  /// `GroupOptions::standby` come in only if they get the rank and the size that they asked for.
  /// `new_size` is 0 then.
  bool everyone = false;
  /// If at least this many ranks are there at the deadline, they form the next epoch, and the
  /// missing members are fenced. 0: all live members must call it.
  int min_size = 0;
};

/// The outcome of a collective that had got no answer.
struct RecoveredRound {
  /// Number of the collective; 0: none was in doubt.
  std::uint64_t round = 0;
  /// Whether the call reached the server. If not: call it again.
  bool called = false;
  std::optional<Error> error;       ///< if it has failed
  std::vector<std::string> values;  ///< if it has succeeded: encoded objects, by rank
};
template <>
inline constexpr bool is_verdict<RecoveredRound> = true;

MUSTER_END_NAMESPACE
