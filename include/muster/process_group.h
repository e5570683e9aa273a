#pragma once

// The second header to read, after muster/store.h. For objects other than bytes also include a
// codec: muster/codec_cereal.h is the default one.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "muster/call.h"
#include "muster/codec.h"
#include "muster/config.h"
#include "muster/process_group_options.h"
#include "muster/result.h"
#include "muster/span.h"
#include "muster/store.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// What an object travels as: text that is only viewed travels as a std::string.
template <class T>
using ObjectOf = std::conditional_t<std::is_convertible_v<const T&, const char*> ||
                                        std::is_same_v<T, std::string_view>,
                                    std::string, T>;

/// A group of ranks `0..world_size-1` in one epoch, made on a store. No process-global state: a
/// process may be in any number of groups, also overlapping ones.
///
/// Collectives (barrier, broadcast_obj, all_gather_obj, gather_obj, scatter_obj, all_reduce_obj)
/// are called by all ranks in the same order; each has one outcome for all. Their timeout is above
/// zero, and the earliest of all ranks decides. A collective that fails to encode its object does
/// not count: call it again.
///
/// errors   of every call, beside its own: those of the store, rank_lost, rank_left, stale_epoch
///          (the members have regrouped), closed (this handle has left), fenced;
///          of collectives also timed_out (ranks: not come), collective_mismatch, cancelled (ranks:
///          by whom), too_large, busy (another collective of this handle is pending),
///          outcome_unknown (until `recover`);
///          of everything with a codec also codec_failure;
///          of ranks out of range: invalid_argument
/// threads  any; one collective, and one receive per source and tag, at a time, else busy. The
///          blocking forms not from an inline handler
///
/// Every call blocks for at most its timeout + `limits().slack` and has a callback form, as those
/// of a store. A handle that was moved from gives `closed`. The handle keeps its store's session.
class MUSTER_API StatelessProcessGroup {
 public:
  /// Forms a group at an address: rank 0 serves there (see HostServer), everybody joins.
  ///
  /// Blocks until all ranks have joined or `store_timeout` has passed; looks names up. The server
  /// lives in rank 0 as long as its handle and those regrouped from it; who is still connected
  /// then gets `unavailable`. A barrier before that, or `close`, lets rank 0 go last.
  ///
  /// host, port  where rank 0 binds and the others connect: a name or an address and a port above
  ///             zero (of no meaning with a listening socket at rank 0), or "unix:/path" and 0
  /// data_expiration_seconds  in place of `options.data_expiration`
  /// store_timeout  in place of `options.timeout` and `options.store.timeout`
  /// errors      timed_out (ranks: not come), rank_in_use, group_mismatch, group_closed,
  ///             address_in_use, permission_denied (not loopback), unavailable, invalid_argument
  /// threads     any, but not from an inline handler
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
  /// name    at least one byte, at most `limits().key_bytes_max`
  /// errors  timed_out (ranks: not come), rank_in_use (ranks: the holder), group_mismatch
  ///         (expected, actual; ranks: by whom), group_closed (ranks: the members), too_large,
  ///         busy (this store has a handle of the group). After cancelled, suspended or
  ///         outcome_unknown this rank may be a member all the same: call it again, or close the
  ///         store, else the others wait for it
  /// cost    one round trip
  /// see     docs/semantics.md "Join"
  static Result<StatelessProcessGroup> create(const Store& store, std::string_view name, int rank,
                                              int world_size, GroupOptions options = {});
  static Call create_async(const Store& store, std::string_view name, int rank, int world_size,
                           GroupOptions options, Handler<StatelessProcessGroup> handler);

  /// Leaves the group without waiting for anybody; a hosted server stops when the last handle on
  /// it goes, and tells its clients.
  ~StatelessProcessGroup();
  StatelessProcessGroup(StatelessProcessGroup&&) noexcept;
  StatelessProcessGroup& operator=(StatelessProcessGroup&&) noexcept;

  // What is known without asking. After a move: -1, 0 and empty.

  int rank() const;
  int world_size() const;
  std::uint64_t epoch() const;
  const std::string& name() const;
  GroupCounters counters() const;
  Store& store() const;

  // Objects, through a codec (muster/codec.h).

  /// Sends one object to a rank. Objects of one (source, destination, tag) arrive in order, once.
  ///
  /// Blocks until the server holds it; the receiver need not have asked yet.
  ///
  /// destination  a rank, also the own one
  /// object       encoded at most `limits().value_bytes_max`
  /// errors       rank_left (the destination), outcome_unknown (until `recover`), too_large,
  ///              resource_exhausted; one that fails takes those behind it on the same stream
  ///              along with sequence_gap, and none of them was sent
  /// cost         one round trip
  template <class Codec = DefaultCodec, class T>
  Result<void> send_obj(int destination, const T& object, std::uint64_t tag = 0,
                        Duration timeout = default_timeout) {
    auto bytes = Codec::template encode<ObjectOf<T>>(object);
    if (!bytes) return about("send_obj", std::move(bytes).error());
    return send_bytes(destination, Codec::id, *bytes, tag, timeout);
  }

  /// Receives the next object from a rank; a call that fails consumes nothing, but for an object
  /// that the codec refuses.
  ///
  /// Blocks until the source has sent it. A timeout of zero asks once.
  ///
  /// errors  timed_out, not_found (zero timeout), expired (that object is gone, the next call gets
  ///         the next; ranks: its source, actual: its sequence), codec_mismatch (expected, actual),
  ///         sequence_gap, codec_failure
  /// cost    one round trip; nothing is polled. The server lets go of the object when this rank's
  ///         next request or heartbeat says that it came
  template <class T, class Codec = DefaultCodec>
  Result<T> recv_obj(int source, std::uint64_t tag = 0, Duration timeout = default_timeout) {
    auto received = recv_numbered_obj<T, Codec>(source, tag, timeout);
    if (!received) return std::move(received).error();
    return std::move(received->object);
  }

  /// As `recv_obj`.
  ///
  /// returns  the object with its number, from 0 per source and tag
  template <class T, class Codec = DefaultCodec>
  Result<Received<T>> recv_numbered_obj(int source, std::uint64_t tag = 0,
                                        Duration timeout = default_timeout) {
    auto received = recv_bytes(source, Codec::id, tag, timeout);
    if (!received) return std::move(received).error();
    auto object = Codec::template decode<T>(received->bytes);
    if (!object) return about("recv_obj", std::move(object).error());
    return Received<T>{*std::move(object), received->sequence};
  }

  /// Gives every rank the root's object. Collective.
  ///
  /// Blocks until the root has called it, or at the root until the server has the object: the root
  /// waits for nobody.
  ///
  /// object   of the root; the other ranks' is ignored
  /// returns  the root's object, at the root too
  /// errors   timed_out (ranks: the root), expired (the root called it too long ago)
  /// cost     one round trip; the server holds the object until the last rank has it
  template <class Codec = DefaultCodec, class T>
  Result<ObjectOf<T>> broadcast_obj(const T& object, int root, Duration timeout = default_timeout) {
    Result<std::string> bytes = std::string();
    if (root == rank()) bytes = Codec::template encode<ObjectOf<T>>(object);
    if (!bytes) return about("broadcast_obj", std::move(bytes).error());
    return decode_one<Codec, ObjectOf<T>>("broadcast_obj",
                                          broadcast_bytes(*bytes, Codec::id, root, timeout));
  }

  /// Gathers one object from every rank, on every rank. Collective.
  ///
  /// Blocks until all ranks have called it.
  ///
  /// object   encoded at most `limits().value_bytes_max`; sizes may differ between ranks
  /// returns  `world_size()` elements, element i from rank i
  /// cost     one round trip; the server holds the sum of sizes, at most
  ///          `limits().round_bytes_max`, until the last rank has it
  /// see      as MPI_Allgatherv
  template <class Codec = DefaultCodec, class T>
  Result<std::vector<ObjectOf<T>>> all_gather_obj(const T& object,
                                                  Duration timeout = default_timeout) {
    auto bytes = Codec::template encode<ObjectOf<T>>(object);
    if (!bytes) return about("all_gather_obj", std::move(bytes).error());
    return decode_all<Codec, ObjectOf<T>>("all_gather_obj",
                                          all_gather_bytes(*bytes, Codec::id, timeout));
  }

  /// Gathers one object from every rank at the root. Collective.
  ///
  /// Blocks until all ranks have called it.
  ///
  /// returns  at the root `world_size()` elements, element i from rank i; elsewhere none
  /// cost     one round trip; the server holds the sum of sizes until the root has it
  template <class Codec = DefaultCodec, class T>
  Result<std::vector<ObjectOf<T>>> gather_obj(const T& object, int root,
                                              Duration timeout = default_timeout) {
    auto bytes = Codec::template encode<ObjectOf<T>>(object);
    if (!bytes) return about("gather_obj", std::move(bytes).error());
    return decode_all<Codec, ObjectOf<T>>("gather_obj",
                                          gather_bytes(*bytes, Codec::id, root, timeout));
  }

  /// Gives rank i the root's element i. Collective.
  ///
  /// Blocks until the root has called it, or at the root until the server has the objects.
  ///
  /// objects  of the root: `world_size()` elements; the other ranks' are ignored
  /// returns  this rank's element, at the root too
  /// errors   invalid_argument (another number of elements), timed_out (ranks: the root), expired
  /// cost     one round trip; the server holds each object until its rank has it
  template <class Codec = DefaultCodec, class T>
  Result<T> scatter_obj(const std::vector<T>& objects, int root,
                        Duration timeout = default_timeout) {
    std::vector<std::string> encoded;
    if (root == rank()) {
      encoded.reserve(objects.size());
      for (const T& object : objects) {
        auto bytes = Codec::template encode<T>(object);
        if (!bytes) return about("scatter_obj", std::move(bytes).error());
        encoded.push_back(*std::move(bytes));
      }
    }
    return decode_one<Codec, T>("scatter_obj", scatter_bytes(encoded, Codec::id, root, timeout));
  }

  /// Folds one object of every rank into one. Collective: on the wire an all_gather.
  ///
  /// Blocks until all ranks have called it.
  ///
  /// combine  `combine(T, T) -> T`; called in the order of ranks on every rank, so that all get
  ///          the same even where it is not associative
  /// cost     as `all_gather_obj`
  template <class Codec = DefaultCodec, class T, class Combine>
  Result<ObjectOf<T>> all_reduce_obj(const T& object, Combine combine,
                                     Duration timeout = default_timeout) {
    auto all = all_gather_obj<Codec, T>(object, timeout);
    if (!all) return about("all_reduce_obj", std::move(all).error());
    ObjectOf<T> folded = std::move(all->front());
    for (std::size_t index = 1; index < all->size(); ++index) {
      ObjectOf<T> next = std::move((*all)[index]);
      folded = combine(std::move(folded), std::move(next));
    }
    return folded;
  }

  // The same on bytes that a codec has made; `codec` is its id. Promises, errors and costs are
  // those of the forms above.

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

  // Callback forms; they never block, and what the arguments view is used before they return.

  Call send_bytes_async(int destination, std::uint32_t codec, std::string_view bytes,
                        std::uint64_t tag, Duration timeout, Handler<void> handler);
  Call recv_bytes_async(int source, std::uint32_t codec, std::uint64_t tag, Duration timeout,
                        Handler<ReceivedBytes> handler);
  Call broadcast_bytes_async(std::string_view bytes, std::uint32_t codec, int root,
                             Duration timeout, Handler<std::string> handler);
  Call all_gather_bytes_async(std::string_view bytes, std::uint32_t codec, Duration timeout,
                              Handler<std::vector<std::string>> handler);
  Call gather_bytes_async(std::string_view bytes, std::uint32_t codec, int root, Duration timeout,
                          Handler<std::vector<std::string>> handler);
  Call scatter_bytes_async(Span<const std::string> bytes, std::uint32_t codec, int root,
                           Duration timeout, Handler<std::string> handler);

  /// Passes when all ranks have called it. Collective.
  ///
  /// Two phases: all arrive, which decides it for all; each rank confirms that it saw so. The
  /// rank that hosts the server (else rank 0) returns only when all have confirmed, are gone, or
  /// its deadline has come, so that it may take the server down afterwards.
  ///
  /// returns  at that rank: who did not confirm
  /// cost     one round trip and a one-way frame
  /// see      docs/protocol.md "round"
  Result<BarrierResult> barrier(Duration timeout = default_timeout);
  Call barrier_async(Duration timeout, Handler<BarrierResult> handler);

  /// Hears of what ends this epoch for the whole group, or for this handle: for what is built on
  /// an epoch, such as a communicator. Beside `GroupOptions::on_loss`.
  ///
  /// handler  told of ranks as `on_loss` is (rank_lost, rank_left), and when this handle is over:
  ///          closed (it has left), stale_epoch (it has regrouped), or why its session ended, such
  ///          as server_restarted. At once if one of these has been before. Runs on the store's
  ///          I/O thread, or on the thread whose call ends the handle; it must not block
  /// threads  any
  [[nodiscard]] GroupWatch watch(std::function<void(const Error& error)> handler);

  /// The members of this epoch and the candidates that wait, with host, pid, label and silence.
  ///
  /// returns  the members by rank, then the candidates
  /// cost     one round trip
  Result<std::vector<MemberInfo>> members(Duration timeout = default_timeout);
  Call members_async(Duration timeout, Handler<std::vector<MemberInfo>> handler);

  /// Drops what this rank sent that nobody fetched.
  ///
  /// older_than  drops what is at least so old; none: the group's expiration, which the server
  ///             sees to by itself
  /// returns     how many objects
  /// cost        one round trip
  Result<std::uint64_t> expire_data(std::optional<Duration> older_than = {},
                                    Duration timeout = default_timeout);
  Call expire_data_async(std::optional<Duration> older_than, Duration timeout,
                         Handler<std::uint64_t> handler);

  /// Forms the next epoch with the live members (and, with a size, candidates).
  ///
  /// Blocks until every live member has called it. When it succeeds this handle is over: its calls
  /// give `stale_epoch`.
  ///
  /// returns  the handle of the new epoch, which shares store and hosted server with this one
  /// errors   timed_out (ranks: not come) and cancelled (ranks: by whom), for all who called it;
  ///          invalid_argument (a survivor's rank is beyond the new size), fenced (the others went
  ///          on without us). This handle lives on. After suspended or outcome_unknown the others
  ///          may have gone on with this rank: call it again, which gives the new handle then
  /// cost     one round trip
  /// see      docs/semantics.md "Regroup"
  Result<StatelessProcessGroup> regroup(RegroupOptions options = {},
                                        Duration timeout = default_timeout);
  Call regroup_async(RegroupOptions options, Duration timeout,
                     Handler<StatelessProcessGroup> handler);

  /// Leaves: the others' pending and later collectives give `rank_left`, later calls of this
  /// handle `closed`.
  ///
  /// cost     one round trip
  Result<void> leave(Duration timeout = default_timeout);
  Call leave_async(Duration timeout, Handler<void> handler);

  /// Leaves, and where this process hosts the server closes the store, waits until all other
  /// sessions have ended, and stops the server. The handle is as if moved from afterwards.
  ///
  /// Blocks at most for `linger`, and only where the server is.
  ///
  /// returns  how many other sessions were left; 0 where no server is
  /// errors   would_deadlock, forked
  /// threads  as the destructor: when no other call of the handle is under way
  Result<std::uint64_t> close(Duration linger = std::chrono::seconds(10));

  /// After `outcome_unknown`, `suspended`, `unavailable` or a send that was cancelled: asks what
  /// became of the calls without an answer. Until then the handle refuses further rounds, and sends
  /// on the streams in doubt.
  ///
  /// Blocks, when the call reached the server, until its round is decided.
  ///
  /// returns  the outcome of the round, which counts as called now
  /// cost     one round trip; none when nothing is in doubt
  Result<RecoveredRound> recover(Duration timeout = default_timeout);
  Call recover_async(Duration timeout, Handler<RecoveredRound> handler);

  /// As `Store::cancel`, for the calls of this handle only.
  ///
  /// threads  any, and signal handlers: async-signal-safe
  void cancel() noexcept;

  class Impl;

 private:
  template <class Codec, class T>
  Result<T> decode_one(std::string_view operation, Result<std::string> bytes) const {
    if (!bytes) return std::move(bytes).error();
    auto object = Codec::template decode<T>(*bytes);
    if (!object) return about(operation, std::move(object).error());
    return object;
  }

  template <class Codec, class T>
  Result<std::vector<T>> decode_all(std::string_view operation,
                                    Result<std::vector<std::string>> all) const {
    if (!all) return std::move(all).error();
    std::vector<T> objects;
    objects.reserve(all->size());
    for (const std::string& bytes : *all) {
      auto object = Codec::template decode<T>(bytes);
      if (!object) return about(operation, std::move(object).error());
      objects.push_back(*std::move(object));
    }
    return objects;
  }

  /// Adds operation, group and epoch to an error that a codec made.
  Error about(std::string_view operation, Error error) const;

  explicit StatelessProcessGroup(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

MUSTER_END_NAMESPACE
