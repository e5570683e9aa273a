#pragma once

// The second header to read, after muster/store.h. To exchange objects other than bytes, also
// include a codec. The default one is muster/codec_cereal.h.

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
#include "muster/detail/misplaced_calls.h"
#include "muster/detail/object_callbacks.h"
#include "muster/detail/object_calls.h"
#include "muster/process_group_options.h"
#include "muster/result.h"
#include "muster/span.h"
#include "muster/store.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// This process's rank in one epoch of a group. The group has the ranks `0..world_size-1`. There is
/// no process-global state: a process may be in any number of groups, and groups may overlap.
///
/// All ranks call the collectives (barrier, broadcast_obj, all_gather_obj, gather_obj, scatter_obj,
/// all_reduce_obj) in the same order. Each collective has one outcome for all ranks. Its timeout is
/// above zero; the earliest deadline of all ranks counts. If a rank fails to encode its object, it
/// has not called the collective, and may call it again.
///
/// errors   of every call, beside its own: those of the store, rank_lost, rank_left, stale_epoch
///          (the members have regrouped), closed (this handle has left), fenced;
///          of collectives also timed_out (ranks: missing), collective_mismatch, cancelled (ranks:
///          who cancelled), too_large, busy (another collective of this handle is pending),
///          outcome_unknown (call `recover`);
///          of calls with a codec also codec_failure;
///          of calls with a rank also invalid_argument (no such rank)
/// threads  any, but only one collective at a time, and one receive per source and tag (else
///          busy); the blocking forms not from an inline handler
///
/// Every call ends at its timeout + `limits().slack` at the latest, and has a callback form, as
/// those of a store. After a move, every call on the old handle returns `closed`. The handle keeps
/// the session of its store alive.
class MUSTER_API StatelessProcessGroup : public detail::ObjectCallbacks<StatelessProcessGroup>,
                                         private detail::MisplacedCalls {
 public:
  /// Forms a group at an address: rank 0 starts a server there (see HostServer), and all ranks
  /// connect to it and join.
  ///
  /// Blocks until all ranks have joined or `store_timeout` has passed; looks up the host's name. If
  /// rank 0 crashes before that, the others go on until it is back or their time is up.
  /// The server runs in rank 0 until its handle, and all handles regrouped from it, are destroyed.
  /// Ranks that are still connected then get `unavailable`. To let rank 0 go last, pass a barrier
  /// or call `close` before.
  ///
  /// host, port  where rank 0 listens and the others connect: a name or an address, and a port
  ///             above zero (ignored if rank 0 is given a listening socket); or "unix:/path" and 0
  /// data_expiration  used instead of `options.data_expiration`
  /// store_timeout  used instead of `options.timeout` and `options.store.timeout`
  /// errors      timed_out (ranks: missing), rank_in_use, group_mismatch, group_closed,
  ///             address_in_use, permission_denied (not loopback), unavailable, invalid_argument
  /// threads     any, but not from an inline handler
  static Result<StatelessProcessGroup> create(std::string_view host, std::uint16_t port, int rank,
                                              int world_size,
                                              Duration data_expiration = std::chrono::hours(1),
                                              Duration store_timeout = std::chrono::seconds(300),
                                              HostedGroupOptions options = {});

  /// Forms the group `name` on a connected store.
  ///
  /// Blocks until all ranks have joined or `options.timeout` has passed. A timeout at this rank
  /// ends only this call: the other ranks go on waiting.
  ///
  /// name    1 to `limits().key_bytes_max` bytes
  /// errors  timed_out (ranks: missing), rank_in_use (ranks: the holder), group_mismatch
  ///         (expected, actual; ranks: those that differ), group_closed (ranks: the members),
  ///         too_large, busy (this store has a handle of the group already).
  ///         After an error with `Happened::maybe` this rank may have become a member. Unless
  ///         `create` is called again within the grace, it then leaves the group. If the others
  ///         have lost a rank in the meantime, `create` takes part in their regroup: `rank()`
  ///         and `world_size()` may be others then
  /// cost    one round trip
  /// see     docs/semantics.md "Join"
  static Result<StatelessProcessGroup> create(const Store& store, std::string_view name, int rank,
                                              int world_size, GroupOptions options = {});
  static Call create_async(const Store& store, std::string_view name, int rank, int world_size,
                           GroupOptions options, Handler<StatelessProcessGroup> handler);

  /// Leaves the group without waiting, also while the store is suspended: the server is told when
  /// it can be reached again. If this was the last handle on a hosted server, the server
  /// says goodbye to its clients and stops.
  ~StatelessProcessGroup();
  StatelessProcessGroup(StatelessProcessGroup&&) noexcept;
  StatelessProcessGroup& operator=(StatelessProcessGroup&&) noexcept;

  // What the handle knows without a request. After a move: -1, 0 and empty.

  int rank() const;
  int world_size() const;
  std::uint64_t epoch() const;
  const std::string& name() const;
  GroupCounters counters() const;
  Store& store() const;

  // Objects, through a codec (muster/codec.h).

  using detail::MisplacedCalls::broadcast_obj;
  using detail::MisplacedCalls::gather_obj;
  using detail::MisplacedCalls::recv_numbered_obj;
  using detail::MisplacedCalls::recv_obj;
  using detail::MisplacedCalls::scatter_obj;
  using detail::MisplacedCalls::send_obj;

  /// Sends one object to a rank. Objects with the same source, destination and tag form a stream:
  /// they arrive in order, each once.
  ///
  /// Blocks until the server has stored the object. The receiver may ask for it later.
  ///
  /// destination  a rank; the own rank is allowed
  /// object       at most `limits().value_bytes_max` bytes when encoded
  /// errors       rank_left (the destination), outcome_unknown (call `recover`), too_large,
  ///              resource_exhausted. If a send fails, later sends that are pending on the same
  ///              stream fail with sequence_gap; none of these objects is sent
  /// cost         one round trip
  template <class Codec = DefaultCodec, class T>
  Result<void> send_obj(Rank destination, const T& object, Tag tag = Tag(),
                        Duration timeout = default_timeout) {
    auto bytes = detail::ObjectCodec<Codec>::encode(object);
    if (!bytes) return about_send(destination, tag, std::move(bytes).error());
    return send_bytes(destination, detail::ObjectCodec<Codec>::id(), *bytes, tag, timeout);
  }
  template <class Codec = DefaultCodec, class T>
  Result<void> send_obj(Rank destination, const T& object, Duration timeout) {
    return send_obj<Codec, T>(destination, object, Tag(), timeout);
  }

  /// Receives the next object from a rank. A call that fails does not consume the object, except
  /// with expired: it is decoded before it is acknowledged. To pass over an object that cannot be
  /// decoded, receive its bytes: `recv_bytes`.
  ///
  /// Blocks until the source has sent it. With a timeout of zero it does not wait.
  ///
  /// errors  timed_out and not_found (zero timeout), both with what waits under other tags;
  ///         expired (the object was dropped because of its age, the next call gets the next one;
  ///         ranks: its source, actual: its sequence), codec_mismatch (expected, actual),
  ///         sequence_gap, codec_failure
  /// cost    one round trip; nothing is polled. The server keeps the object until this rank's next
  ///         request or heartbeat acknowledges it
  template <class T, class Codec = DefaultCodec>
  Result<T> recv_obj(Rank source, Tag tag = Tag(), Duration timeout = default_timeout) {
    auto received = recv_numbered_obj<T, Codec>(source, tag, timeout);
    if (!received) return std::move(received).error();
    return std::move(received->object);
  }
  template <class T, class Codec = DefaultCodec>
  Result<T> recv_obj(Rank source, Duration timeout) {
    return recv_obj<T, Codec>(source, Tag(), timeout);
  }

  /// As `recv_obj`.
  ///
  /// returns  the object and its sequence number, counted from 0 for each source and tag
  template <class T, class Codec = DefaultCodec>
  Result<Received<T>> recv_numbered_obj(Rank source, Tag tag = Tag(),
                                        Duration timeout = default_timeout) {
    auto delivery = recv_delivery(source, detail::ObjectCodec<Codec>::id(), tag, timeout);
    if (!delivery) return std::move(delivery).error();
    auto object = detail::ObjectCodec<Codec>::template decode<T>(delivery->bytes());
    if (!object.has_value()) return about_delivery(*delivery, std::move(object).error());
    return Received<T>{*std::move(object), delivery->accept().sequence};
  }
  template <class T, class Codec = DefaultCodec>
  Result<Received<T>> recv_numbered_obj(Rank source, Duration timeout) {
    return recv_numbered_obj<T, Codec>(source, Tag(), timeout);
  }

  /// Gives every rank the root's object. Collective.
  ///
  /// Blocks until the root has called it. At the root: until the server has stored the object; the
  /// root does not wait for other ranks.
  ///
  /// object   the object to send; ignored at other ranks than the root, which may leave it out:
  ///          `broadcast_obj<T>(root)`
  /// returns  the root's object, also at the root
  /// errors   timed_out (ranks: the root), expired (the object was dropped because of its age)
  /// cost     one round trip; the server holds the object until the last rank has it
  template <class Codec = DefaultCodec, class T>
  Result<ObjectOf<T>> broadcast_obj(const T& object, Rank root,
                                    Duration timeout = default_timeout) {
    Result<std::string> bytes = std::string();
    if (root.number == rank()) bytes = detail::ObjectCodec<Codec>::encode(object);
    if (!bytes) return about("broadcast_obj", Happened::no, std::move(bytes).error());
    return decode_one<Codec, ObjectOf<T>>(
        "broadcast_obj", root,
        broadcast_bytes(*bytes, detail::ObjectCodec<Codec>::id(), root, timeout));
  }
  template <class T, class Codec = DefaultCodec>
  Result<T> broadcast_obj(Rank root, Duration timeout = default_timeout) {
    if (root.number == rank())
      return about("broadcast_obj", Happened::no, detail::root_needs("an object"));
    return decode_one<Codec, T>(
        "broadcast_obj", root,
        broadcast_bytes({}, detail::ObjectCodec<Codec>::id(), root, timeout));
  }

  /// Gathers one object from every rank, on every rank. Collective.
  ///
  /// Blocks until all ranks have called it.
  ///
  /// object   at most `limits().value_bytes_max` bytes when encoded; sizes may differ between ranks
  /// returns  `world_size()` elements, element i from rank i
  /// cost     one round trip; the server holds all objects, at most `limits().round_bytes_max`
  ///          bytes in sum, until the last rank has acknowledged them
  /// see      as MPI_Allgatherv
  template <class Codec = DefaultCodec, class T>
  Result<std::vector<ObjectOf<T>>> all_gather_obj(const T& object,
                                                  Duration timeout = default_timeout) {
    auto bytes = detail::ObjectCodec<Codec>::encode(object);
    if (!bytes) return about("all_gather_obj", Happened::no, std::move(bytes).error());
    return decode_all<Codec, ObjectOf<T>>(
        "all_gather_obj", all_gather_bytes(*bytes, detail::ObjectCodec<Codec>::id(), timeout));
  }

  /// Gathers one object from every rank at the root. Collective.
  ///
  /// Blocks until all ranks have called it.
  ///
  /// returns  at the root `world_size()` elements, element i from rank i; at other ranks none
  /// cost     one round trip; the server holds all objects until the root has acknowledged them
  template <class Codec = DefaultCodec, class T>
  Result<std::vector<ObjectOf<T>>> gather_obj(const T& object, Rank root,
                                              Duration timeout = default_timeout) {
    auto bytes = detail::ObjectCodec<Codec>::encode(object);
    if (!bytes) return about("gather_obj", Happened::no, std::move(bytes).error());
    return decode_all<Codec, ObjectOf<T>>(
        "gather_obj", gather_bytes(*bytes, detail::ObjectCodec<Codec>::id(), root, timeout));
  }

  /// Gives rank i the root's element i. Collective.
  ///
  /// Blocks until the root has called it. At the root: until the server has stored the objects.
  ///
  /// objects  `world_size()` elements; ignored at other ranks than the root, which may leave them
  ///          out: `scatter_obj<T>(root)`
  /// returns  this rank's element, also at the root
  /// errors   invalid_argument (another number of elements), timed_out (ranks: the root), expired
  ///          (the object was dropped because of its age)
  /// cost     one round trip; the server holds each object until its rank has acknowledged it
  template <class Codec = DefaultCodec, class T>
  Result<T> scatter_obj(const std::vector<T>& objects, Rank root,
                        Duration timeout = default_timeout) {
    Result<std::vector<std::string>> encoded = std::vector<std::string>();
    if (root.number == rank()) encoded = detail::ObjectCodec<Codec>::encode_all(objects);
    if (!encoded) return about("scatter_obj", Happened::no, std::move(encoded).error());
    return decode_one<Codec, T>(
        "scatter_obj", root,
        scatter_bytes(*encoded, detail::ObjectCodec<Codec>::id(), root, timeout));
  }
  template <class T, class Codec = DefaultCodec>
  Result<T> scatter_obj(Rank root, Duration timeout = default_timeout) {
    if (root.number == rank())
      return about("scatter_obj", Happened::no, detail::root_needs("objects"));
    return decode_one<Codec, T>("scatter_obj", root,
                                scatter_bytes({}, detail::ObjectCodec<Codec>::id(), root, timeout));
  }

  /// Combines one object of every rank into one. Collective; on the wire it is an all_gather.
  ///
  /// Blocks until all ranks have called it.
  ///
  /// combine  `combine(T, T) -> T`. Every rank calls it in the order of ranks, so all ranks get the
  ///          same result even if it is not associative
  /// cost     as `all_gather_obj`
  template <class Codec = DefaultCodec, class T, class Combine>
  Result<ObjectOf<T>> all_reduce_obj(const T& object, Combine combine,
                                     Duration timeout = default_timeout) {
    auto all = all_gather_obj<Codec, T>(object, timeout);
    if (!all) return about("all_reduce_obj", all.error().happened, std::move(all).error());
    return detail::folded(*std::move(all), combine);
  }

  // The same with bytes that a codec has encoded; `codec` is the codec's id. Promises, errors and
  // costs are those of the forms above.

  Result<void> send_bytes(Rank destination, std::uint32_t codec, std::string_view bytes,
                          Tag tag = Tag(), Duration timeout = default_timeout);
  Result<ReceivedBytes> recv_bytes(Rank source, std::uint32_t codec, Tag tag = Tag(),
                                   Duration timeout = default_timeout);
  /// As `recv_bytes`, but the object is received when its delivery is accepted, and no sooner.
  Result<Delivery> recv_delivery(Rank source, std::uint32_t codec, Tag tag = Tag(),
                                 Duration timeout = default_timeout);
  Result<std::string> broadcast_bytes(std::string_view bytes, std::uint32_t codec, Rank root,
                                      Duration timeout = default_timeout);
  Result<std::vector<std::string>> all_gather_bytes(std::string_view bytes, std::uint32_t codec,
                                                    Duration timeout = default_timeout);
  Result<std::vector<std::string>> gather_bytes(std::string_view bytes, std::uint32_t codec,
                                                Rank root, Duration timeout = default_timeout);
  Result<std::string> scatter_bytes(Span<const std::string> bytes, std::uint32_t codec, Rank root,
                                    Duration timeout = default_timeout);

  // Callback forms. They never block. After they have returned, they no longer use what the
  // arguments point to. Those of calls on objects are `send_obj_async`, `recv_obj_async` and so on:
  // all arguments of the blocking form, none left out, and a handler
  // (muster/detail/object_callbacks.h). muster/future.h makes a future of any.

  Call send_bytes_async(Rank destination, std::uint32_t codec, std::string_view bytes, Tag tag,
                        Duration timeout, Handler<void> handler);
  Call recv_bytes_async(Rank source, std::uint32_t codec, Tag tag, Duration timeout,
                        Handler<ReceivedBytes> handler);
  Call recv_delivery_async(Rank source, std::uint32_t codec, Tag tag, Duration timeout,
                           Handler<Delivery> handler);
  Call broadcast_bytes_async(std::string_view bytes, std::uint32_t codec, Rank root,
                             Duration timeout, Handler<std::string> handler);
  Call all_gather_bytes_async(std::string_view bytes, std::uint32_t codec, Duration timeout,
                              Handler<std::vector<std::string>> handler);
  Call gather_bytes_async(std::string_view bytes, std::uint32_t codec, Rank root, Duration timeout,
                          Handler<std::vector<std::string>> handler);
  Call scatter_bytes_async(Span<const std::string> bytes, std::uint32_t codec, Rank root,
                           Duration timeout, Handler<std::string> handler);

  /// Waits until all ranks have called it. Collective.
  ///
  /// Two phases: when all ranks have called it, the barrier has succeeded for all of them; then
  /// each rank confirms that it knows so. The last rank out is the rank that hosts the server, else
  /// rank 0: it returns when every other rank has confirmed or is gone, or at its deadline. So it
  /// may stop the server afterwards.
  ///
  /// returns  at the last rank out: the ranks that did not confirm
  /// cost     one round trip and a one-way frame
  /// see      docs/protocol.md "round"
  Result<BarrierResult> barrier(Duration timeout = default_timeout);
  Call barrier_async(Duration timeout, Handler<BarrierResult> handler);

  /// Ends what the other ranks of this group wait for. For a rank that has something else to do
  /// first, such as to restore another group that it is in: the others hear of it at once, in place
  /// of waiting for it until their deadlines.
  ///
  /// The collective that others wait in, or the next one, fails with `interrupted` for all ranks,
  /// and so do receives that wait for this rank's objects, and the communicators of this group. The
  /// group itself goes on: each rank's next collective is the next one of all. This rank passes
  /// what it has not called: broadcasts, too, that it has yet to take part in.
  ///
  /// reason  why, for the errors of the others; at most `limits().key_bytes_max` bytes
  /// errors  busy (another one of this handle is pending). After one with `Happened::maybe` the
  ///         handle refuses collectives until it is called again
  /// cost    one round trip
  /// see     docs/semantics.md "Interruption"
  Result<void> interrupt(std::string_view reason, Duration timeout = default_timeout);
  Call interrupt_async(std::string_view reason, Duration timeout, Handler<void> handler);

  /// Calls `handler` when something ends this epoch, for the group or for this handle, or when a
  /// rank interrupts it. For what is built on an epoch, such as a communicator. Works beside
  /// `GroupOptions::on_loss` and `on_leave`.
  ///
  /// handler  called as those are, with rank_lost, rank_left and interrupted (which does not end
  ///          the epoch), and when this handle is over: closed (it has left), stale_epoch (it has
  ///          regrouped), or why its session ended, such as server_restarted. Called at once if it,
  ///          or a loss, has happened already. Runs on the store's I/O thread, or on the thread
  ///          whose call ends the handle; it must not block
  /// threads  any
  [[nodiscard]] GroupWatch watch(std::function<void(const Error& error)> handler);

  /// Lists the members of this epoch and the waiting candidates, with host, pid, label and the time
  /// since the server last received anything from them.
  ///
  /// returns  the members by rank, then the candidates
  /// cost     one round trip
  Result<std::vector<MemberInfo>> members(Duration timeout = default_timeout);
  Call members_async(Duration timeout, Handler<std::vector<MemberInfo>> handler);

  /// Drops objects that this rank has sent and nobody has received.
  ///
  /// older_than  the least age of an object to drop; none: the group's expiration, at which the
  ///             server drops objects by itself
  /// returns     how many were dropped: of the oldest 65,536 at most, so there may be more
  /// cost        one round trip
  Result<std::uint64_t> expire_data(std::optional<Duration> older_than = {},
                                    Duration timeout = default_timeout);
  Call expire_data_async(std::optional<Duration> older_than, Duration timeout,
                         Handler<std::uint64_t> handler);

  /// Forms the next epoch from the live members and, if `options` says so, from candidates.
  ///
  /// Blocks until every live member has called it. After success this handle is over: its calls
  /// return `stale_epoch`.
  ///
  /// returns  the handle of the new epoch, which shares store and hosted server with this one
  /// errors   timed_out (ranks: missing) and cancelled (ranks: who cancelled), at all ranks that
  ///          called it, and so rank_lost, rank_left (all were there for the new size, and these
  ///          are gone); invalid_argument (a survivor's rank is beyond the new size), fenced (the
  ///          others regrouped without this rank). The handle outlives an error. After one with
  ///          `Happened::maybe` call it again: it gives the new handle if there is one
  /// cost     one round trip
  /// see      docs/semantics.md "Regroup"
  Result<StatelessProcessGroup> regroup(RegroupOptions options = {},
                                        Duration timeout = default_timeout);
  Call regroup_async(RegroupOptions options, Duration timeout,
                     Handler<StatelessProcessGroup> handler);

  /// Leaves the group. Pending and later collectives of the other ranks return `rank_left`, later
  /// calls on this handle return `closed`. After an error the handle stays as it was.
  ///
  /// cost     one round trip
  Result<void> leave(Duration timeout = default_timeout);
  Call leave_async(Duration timeout, Handler<void> handler);

  /// Leaves the group. If this process hosts the server, it then closes the store, waits until all
  /// other sessions have ended, and stops the server. Afterwards the handle is as after a move.
  ///
  /// Blocks for at most `linger`, and only in the process that hosts the server.
  ///
  /// returns  the number of other sessions that had not ended; 0 if this process hosts no server
  /// errors   would_deadlock, forked
  /// threads  as the destructor: only when no other call on the handle is pending
  Result<std::uint64_t> close(Duration linger = std::chrono::seconds(10));

  /// Asks the server for the outcome of calls that got no answer. Call it after a collective or
  /// send that failed with `Happened::maybe`, such as outcome_unknown, suspended, unavailable, or a
  /// cancelled send. Until then the handle refuses collectives, and sends on streams whose last
  /// send got no answer.
  ///
  /// If the collective had reached the server, blocks until that has an outcome.
  ///
  /// returns  the outcome of the collective; or that it did not reach the server: call it again
  /// cost     one round trip; none when nothing is in doubt
  Result<RecoveredRound> recover(Duration timeout = default_timeout);
  Call recover_async(Duration timeout, Handler<RecoveredRound> handler);

  /// As `Store::cancel`, but only for calls on this handle.
  ///
  /// threads  any, and signal handlers: async-signal-safe
  void cancel() noexcept;

  class Impl;

 private:
  friend class detail::ObjectCallbacks<StatelessProcessGroup>;

  template <class Codec, class T>
  Result<T> decode_one(std::string_view operation, Rank root, Result<std::string> bytes) const {
    if (!bytes) return std::move(bytes).error();
    auto object = detail::ObjectCodec<Codec>::template decode<T>(*bytes);
    if (object.has_value()) return object;
    return about(operation, Happened::maybe, detail::blamed(object.error(), root.number));
  }

  template <class Codec, class T>
  Result<std::vector<T>> decode_all(std::string_view operation,
                                    Result<std::vector<std::string>> all) const {
    if (!all) return std::move(all).error();
    std::vector<T> objects;
    objects.reserve(all->size());
    for (const std::string& bytes : *all) {
      auto object = detail::ObjectCodec<Codec>::template decode<T>(bytes);
      if (!object.has_value()) {
        const int rank = static_cast<int>(objects.size());
        return about(operation, Happened::maybe, detail::blamed(object.error(), rank));
      }
      objects.push_back(*std::move(object));
    }
    return objects;
  }

  /// Adds operation, group and epoch to an error that a codec made, and whether the call that it is
  /// about happened.
  Error about(std::string_view operation, Happened happened, Error error) const;
  /// The same of a stream's call.
  Error about_send(Rank destination, Tag tag, Error error) const;
  Error about_delivery(const Delivery& delivery, Error error) const;

  explicit StatelessProcessGroup(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

MUSTER_END_NAMESPACE
