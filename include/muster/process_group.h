#pragma once

// The second header to read, after muster/store.h.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/codec.h"
#include "muster/config.h"
#include "muster/result.h"
#include "muster/span.h"
#include "muster/store.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

struct GroupOptions {
  /// After this long an object or broadcast that nobody fetched is dropped. The same on all
  /// ranks.
  Duration data_expiration{std::chrono::hours(1)};
  /// Of joining, and of every call that is given `default_timeout`.
  Duration timeout{std::chrono::seconds(300)};
  /// When the group is whole: wait as a candidate for its next epoch, with any rank.
  bool standby = false;
  /// Shown to the other members, e.g. an address of this rank's own server.
  std::string info;
  /// Told when a rank of this group is lost (rank_lost) or has left (rank_left), and why.
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
  /// holds it; -1: none. Taken over.
  int listening_socket = -1;
  StoreOptions store;
};

enum class MemberState { live, silent, lost, left, candidate };

struct MemberInfo {
  int rank = 0;
  MemberState state = MemberState::live;
  ProcessInfo process;
  Duration silence{0};  ///< since its last byte
  std::string info;
};

/// What this handle has done so far in its epoch.
struct GroupCounters {
  std::uint64_t rounds = 0;            ///< collectives that were decided
  std::uint64_t objects_sent = 0;
  std::uint64_t objects_received = 0;
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
  int min_size = 0;
};

/// What became of a collective whose outcome was not known.
struct RecoveredRound {
  bool called = false;              ///< false: it never reached the server; call it again
  std::optional<Error> error;       ///< as it was decided
  std::vector<std::string> values;  ///< as it was decided: encoded objects, by rank
};

/// A group of ranks `0..world_size-1` in one epoch, made on a store. No process-global state: a
/// process may be in any number of groups, also overlapping ones.
///
/// Collectives (barrier, broadcast_obj, all_gather_obj, gather_obj, scatter_obj, all_reduce_obj)
/// are called by all ranks in the same order, each costs one round trip, and has one outcome for
/// all. Errors that every call can give, beside those of the store: rank_lost, rank_left,
/// stale_epoch, fenced, and for collectives timed_out (ranks: not come), collective_mismatch,
/// cancelled, busy (another collective of this handle is pending), invalid_argument.
/// Threads: any; one collective, and one receive per source and tag, at a time.
class MUSTER_API StatelessProcessGroup {
 public:
  /// Forms a group at an address: rank 0 serves there (see HostServer), everybody joins.
  ///
  /// Blocks until all ranks have joined or `store_timeout` has passed.
  ///
  /// host, port  where rank 0 binds and the others connect; "unix:/path" with port 0 is allowed
  /// errors      timed_out (ranks: not come), rank_in_use, group_mismatch, group_closed,
  ///             address_in_use, permission_denied (not loopback), unavailable
  static Result<StatelessProcessGroup> create(
      std::string_view host, std::uint16_t port, int rank, int world_size,
      std::chrono::seconds data_expiration_seconds = std::chrono::seconds(3600),
      std::chrono::seconds store_timeout = std::chrono::seconds(300),
      HostedGroupOptions options = {});

  /// Forms the group `name` on a connected store.
  ///
  /// Blocks until all ranks have joined or `options.timeout` has passed; a rank whose time is up
  /// leaves the others waiting.
  ///
  /// errors  timed_out (ranks: not come), rank_in_use, group_mismatch, group_closed
  static Result<StatelessProcessGroup> create(const Store& store, std::string_view name, int rank,
                                              int world_size, GroupOptions options = {});
  static void create_async(const Store& store, std::string_view name, int rank, int world_size,
                           GroupOptions options, Handler<StatelessProcessGroup> handler);

  /// Leaves the group without waiting for anybody; a hosted server goes with it.
  ~StatelessProcessGroup();
  StatelessProcessGroup(StatelessProcessGroup&&) noexcept;
  StatelessProcessGroup& operator=(StatelessProcessGroup&&) noexcept;

  int rank() const;
  int world_size() const;
  std::uint64_t epoch() const;
  const std::string& name() const;
  Store& store() const;
  GroupCounters counters() const;

  // Objects, through a codec (muster/codec.h).

  /// Sends one object to a rank. Objects of one (source, destination, tag) arrive in order, once.
  ///
  /// Blocks until the server holds it; the receiver need not have asked yet.
  template <class Codec = DefaultCodec, class T>
  Result<void> send_obj(int destination, const T& object, std::uint64_t tag = 0,
                        Duration timeout = default_timeout) {
    auto bytes = Codec::template encode<T>(object);
    if (!bytes) return std::move(bytes).error();
    return send_bytes(destination, Codec::id, *bytes, tag, timeout);
  }

  /// Receives the next object from a rank; a call that timed out consumes nothing.
  ///
  /// errors  expired (that object is gone, the next call gets the next), codec_mismatch,
  ///         sequence_gap, codec_failure
  template <class T, class Codec = DefaultCodec>
  Result<T> recv_obj(int source, std::uint64_t tag = 0, Duration timeout = default_timeout) {
    auto object = recv_bytes(source, Codec::id, tag, timeout);
    if (!object) return std::move(object).error();
    return Codec::template decode<T>(object->bytes);
  }

  /// Gives every rank the root's object; the other ranks' `object` is ignored.
  template <class Codec = DefaultCodec, class T>
  Result<T> broadcast_obj(const T& object, int root, Duration timeout = default_timeout) {
    Result<std::string> bytes = std::string();
    if (root == rank()) bytes = Codec::template encode<T>(object);
    if (!bytes) return std::move(bytes).error();
    auto value = broadcast_bytes(*bytes, Codec::id, root, timeout);
    if (!value) return std::move(value).error();
    return Codec::template decode<T>(*value);
  }

  /// Gathers one object from every rank, on every rank.
  template <class Codec = DefaultCodec, class T>
  Result<std::vector<T>> all_gather_obj(const T& object, Duration timeout = default_timeout) {
    auto bytes = Codec::template encode<T>(object);
    if (!bytes) return std::move(bytes).error();
    return decode_all<Codec, T>(all_gather_bytes(*bytes, Codec::id, timeout));
  }

  /// Gathers one object from every rank at the root; empty elsewhere.
  template <class Codec = DefaultCodec, class T>
  Result<std::vector<T>> gather_obj(const T& object, int root,
                                    Duration timeout = default_timeout) {
    auto bytes = Codec::template encode<T>(object);
    if (!bytes) return std::move(bytes).error();
    return decode_all<Codec, T>(gather_bytes(*bytes, Codec::id, root, timeout));
  }

  /// Gives rank i the root's element i; the other ranks' `objects` are ignored.
  template <class Codec = DefaultCodec, class T>
  Result<T> scatter_obj(const std::vector<T>& objects, int root,
                        Duration timeout = default_timeout) {
    std::vector<std::string> encoded;
    if (root == rank()) {
      for (const T& object : objects) {
        auto bytes = Codec::template encode<T>(object);
        if (!bytes) return std::move(bytes).error();
        encoded.push_back(std::move(*bytes));
      }
    }
    auto value = scatter_bytes(encoded, Codec::id, root, timeout);
    if (!value) return std::move(value).error();
    return Codec::template decode<T>(*value);
  }

  /// Folds one object of every rank into one with `combine(T, T) -> T`, in the order of ranks on
  /// every rank, so that all get the same.
  template <class Codec = DefaultCodec, class T, class Combine>
  Result<T> all_reduce_obj(const T& object, Combine combine, Duration timeout = default_timeout) {
    auto all = all_gather_obj<Codec, T>(object, timeout);
    if (!all) return std::move(all).error();
    T folded = std::move(all->front());
    for (std::size_t i = 1; i < all->size(); ++i) {
      folded = combine(std::move(folded), std::move((*all)[i]));
    }
    return folded;
  }

  // The same on bytes.

  struct ReceivedBytes {
    std::string bytes;
    std::uint64_t sequence = 0;  ///< from 0 per source and tag
  };
  Result<void> send_bytes(int destination, std::uint32_t codec, std::string_view bytes,
                          std::uint64_t tag = 0, Duration timeout = default_timeout);
  Result<ReceivedBytes> recv_bytes(int source, std::uint32_t codec, std::uint64_t tag = 0,
                                   Duration timeout = default_timeout);
  Result<std::string> broadcast_bytes(std::string_view bytes, std::uint32_t codec, int root,
                                      Duration timeout = default_timeout);
  Result<std::vector<std::string>> all_gather_bytes(std::string_view bytes, std::uint32_t codec,
                                                    Duration timeout = default_timeout);
  Result<std::vector<std::string>> gather_bytes(std::string_view bytes, std::uint32_t codec,
                                                int root, Duration timeout = default_timeout);
  Result<std::string> scatter_bytes(Span<const std::string> bytes, std::uint32_t codec, int root,
                                    Duration timeout = default_timeout);

  void send_bytes_async(int destination, std::uint32_t codec, std::string_view bytes,
                        std::uint64_t tag, Duration timeout, Handler<void> handler);
  void recv_bytes_async(int source, std::uint32_t codec, std::uint64_t tag, Duration timeout,
                        Handler<ReceivedBytes> handler);
  void broadcast_bytes_async(std::string_view bytes, std::uint32_t codec, int root,
                             Duration timeout, Handler<std::string> handler);
  void all_gather_bytes_async(std::string_view bytes, std::uint32_t codec, Duration timeout,
                              Handler<std::vector<std::string>> handler);
  void gather_bytes_async(std::string_view bytes, std::uint32_t codec, int root, Duration timeout,
                          Handler<std::vector<std::string>> handler);
  void scatter_bytes_async(Span<const std::string> bytes, std::uint32_t codec, int root,
                           Duration timeout, Handler<std::string> handler);

  /// Blocks until all ranks have called it.
  ///
  /// Two phases: all arrive, which decides it for all; each rank confirms that it saw so. The
  /// rank that hosts the server (else rank 0) returns only when all have confirmed, are gone, or
  /// its deadline has come, so that it may take the server down afterwards.
  ///
  /// timeout  of the whole call, above zero; the earliest of all ranks decides
  /// cost     one round trip and a one-way frame
  Result<BarrierResult> barrier(Duration timeout = default_timeout);
  void barrier_async(Duration timeout, Handler<BarrierResult> handler);

  /// The members of this epoch and the candidates that wait, with host, pid, label and silence.
  Result<std::vector<MemberInfo>> members(Duration timeout = default_timeout);
  void members_async(Duration timeout, Handler<std::vector<MemberInfo>> handler);

  /// Drops what this rank sent that nobody fetched and that is at least `older_than` old (by
  /// default the group's expiration, which the server sees to by itself).
  ///
  /// returns  how many objects
  Result<std::uint64_t> expire_data(std::optional<Duration> older_than = {},
                                    Duration timeout = default_timeout);
  void expire_data_async(std::optional<Duration> older_than, Duration timeout,
                         Handler<std::uint64_t> handler);

  /// Forms the next epoch with the live members (and, with a size, candidates). Every live member
  /// must call it. This handle is dead afterwards.
  ///
  /// returns  the handle of the new epoch
  Result<StatelessProcessGroup> regroup(RegroupOptions options = {},
                                        Duration timeout = default_timeout);
  void regroup_async(RegroupOptions options, Duration timeout,
                     Handler<StatelessProcessGroup> handler);

  /// Leaves: the others' pending and later collectives give `rank_left`.
  Result<void> leave(Duration timeout = default_timeout);
  void leave_async(Duration timeout, Handler<void> handler);

  /// After `outcome_unknown` or `suspended`: asks what became of the calls without an answer.
  /// Until then the handle refuses further rounds (and sends on the streams in doubt).
  Result<RecoveredRound> recover(Duration timeout = default_timeout);
  void recover_async(Duration timeout, Handler<RecoveredRound> handler);

  /// Ends the pending calls of this handle with `cancelled`; an undecided round for all ranks.
  ///
  /// threads  any, and signal handlers: async-signal-safe
  void cancel() noexcept;

  class Impl;

 private:
  template <class Codec, class T>
  static Result<std::vector<T>> decode_all(Result<std::vector<std::string>> all) {
    if (!all) return std::move(all).error();
    std::vector<T> objects;
    objects.reserve(all->size());
    for (const std::string& bytes : *all) {
      auto object = Codec::template decode<T>(bytes);
      if (!object) return std::move(object).error();
      objects.push_back(std::move(*object));
    }
    return objects;
  }

  explicit StatelessProcessGroup(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

MUSTER_END_NAMESPACE
