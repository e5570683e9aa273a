#pragma once

// A communicator moves data between the ranks of a group. A program makes one with
// muster/nccl.h (device memory) or muster/gloo.h (host memory); everything else is the same for
// both, so a function that takes a Communicator runs on either.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "muster/config.h"
#include "muster/process_group.h"
#include "muster/result.h"
#include "muster/span.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// The type of a buffer's elements.
enum class DataType : std::uint8_t {
  int8 = 0,
  uint8 = 1,
  int32 = 2,
  uint32 = 3,
  int64 = 4,
  uint64 = 5,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  bfloat16 = 9,
  // With NCCL from 2.24 on; its reductions of these need a GPU of compute capability 9.0.
  float8_e4m3 = 10,
  float8_e5m2 = 11,
};

/// The bytes of one element; 0 if `type` is not a DataType.
constexpr std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::int8:
    case DataType::uint8:
    case DataType::float8_e4m3:
    case DataType::float8_e5m2: return 1;
    case DataType::float16:
    case DataType::bfloat16: return 2;
    case DataType::int32:
    case DataType::uint32:
    case DataType::float32: return 4;
    case DataType::int64:
    case DataType::uint64:
    case DataType::float64: return 8;
  }
  return 0;
}

enum class ReduceOp : std::uint8_t {
  sum = 0,
  product = 1,
  max = 2,
  min = 3,
  average = 4,
  // Of integers and bools, and not of communicators: `all_reduce_value` and calls on tensors.
  bit_and = 5,
  bit_or = 6,
  bit_xor = 7,
};

/// What a reduction does with the elements of the ranks: a ReduceOp, or scaled_sum.
class Reduction {
 public:
  constexpr Reduction(ReduceOp operation) : operation_(operation) {}

  constexpr ReduceOp operation() const { return operation_; }
  /// What the elements of this rank are multiplied by before; nothing: they are not.
  constexpr std::optional<double> factor() const { return factor_; }

 private:
  friend constexpr Reduction scaled_sum(double factor);

  ReduceOp operation_;
  std::optional<double> factor_;
};

/// The sum of the elements of all ranks, each multiplied by its rank's factor before. As
/// ncclRedOpCreatePreMulSum.
///
/// Of floating-point types only. The factor is rounded to the type of the elements, and so is each
/// product. The elements in `send` stay as they are.
///
/// factor  of this rank; other ranks may give others. Any number, also infinite or nan
/// errors  of the call: invalid_argument (integers; with NCCL, a host's own functions without those
///         for it)
constexpr Reduction scaled_sum(double factor) {
  Reduction reduction(ReduceOp::sum);
  reduction.factor_ = factor;
  return reduction;
}

/// How a communicator reacts when a rank of its group is lost or leaves.
enum class OnLoss : std::uint8_t {
  abort,   ///< it ends at once: operations in progress are aborted, later calls give the reason
  notify,  ///< it calls `on_end`, and the host decides when to end it
};

/// The options that NCCL and Gloo share; nccl::Options and gloo::Options add their own.
struct CommunicatorOptions {
  /// The timeout of `create`, and of every call that is given `default_timeout`; above zero.
  Duration timeout{std::chrono::seconds(300)};
  OnLoss on_loss = OnLoss::abort;
  /// Called once when the communicator ends, with the reason; with OnLoss::notify also for every
  /// loss. Runs on the store's I/O thread or on the thread that found the reason; it must not
  /// block.
  std::function<void(const Error& error)> on_end;
  /// How long an abort may take. NCCL: then its handle is given up. Gloo: how long calls in
  /// progress have to return; then their connections are closed under them.
  Duration abort_timeout{std::chrono::seconds(10)};
};

/// How long `create` took on this rank.
struct CreationTimes {
  Duration total{0};
  Duration library{0};  ///< the part of it in NCCL or Gloo, including their wait for other ranks
};

/// A communicator of all ranks of one epoch of a group.
///
/// Its group is watched: when a rank is lost or leaves, the communicator ends on all other ranks
/// (see OnLoss). It also ends (`closed`) when this rank's handle of the group, or of a group that
/// was attached later, is destroyed. A failure of the store alone (suspended, unavailable,
/// server_restarted) does not end it.
///
/// NCCL: buffers are device memory, and a stream belongs to the communicator's device. A call
/// returns when the operation is on the stream. The caller's current device does not change.
/// Gloo: buffers are host memory, and `stream` is null. A call returns when this rank's part is
/// done.
///
/// A call that fails after it began ends the communicator. So does one that NCCL refuses, but not
/// in NCCL's blocking mode. If ranks call different operations, counts, types, reductions or roots,
/// they wait for each other until the timeout.
///
/// errors   of every call, beside its own: the reason why it ended (rank_lost, rank_left, closed,
///          aborted, timed_out; nccl: `actual` is the ncclResult_t; gloo: `detail` is Gloo's text),
///          invalid_argument (type, rank, count, buffer, stream; nothing was done), busy (Gloo:
///          another call is in progress; nothing was done), would_deadlock (NCCL, see threads),
///          forked (this process is a child of the one that made it)
/// threads  `abort` and queries: any, at any time. All other calls of one with Gloo: one at a time.
///          With NCCL `close` and `attach`: any. Calls that issue operations (collectives, send,
///          recv, grouped, nccl::with_native): one thread per device, the first one that called,
///          until that thread ends, or calls nccl::release_issuer. Others get would_deadlock,
///          because NCCL may hang then. With NCCL_LAUNCH_ORDER_IMPLICIT=1 in the environment: any
///          thread. Calls on one device run one after the other; a call that cannot begin in time
///          gives timed_out and has issued nothing. This holds among the communicators of one
///          nccl::Communicators. One that was made by nccl::create does not know the others, and
///          the host must keep the order
///
/// A Communicator is a handle. One that was moved from gives `closed` from every call.
///
/// After fork() the child gets `forked` from every call. When the handle is destroyed there, only
/// the child's copies of sockets are closed; the parent is not affected.
class MUSTER_API Communicator {
 public:
  /// Aborts, without waiting. No call of `on_end` runs any more when it returns.
  ~Communicator();
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;

  /// "nccl" or "gloo"; empty after a move.
  std::string_view kind() const;
  int rank() const;
  int world_size() const;
  const std::string& group() const;  ///< the group's name
  std::uint64_t epoch() const;
  CreationTimes creation_times() const;
  /// The reason why it ended, if it has ended.
  ///
  /// NCCL: also asks NCCL, if no other thread is in a call. A host that waits for a stream calls
  /// this to learn that NCCL cannot go on. If NCCL only reports that some peer is gone, the store
  /// has 5 s to report which one before the communicator ends.
  std::optional<Error> error() const;

  // Collectives: all ranks call them in the same order, with the same count, type, reduction and
  // root. `send` and `receive` may be the same buffer if their sizes are equal. `send` may be this
  // rank's part of `receive`, and the other way round.

  Result<void> all_reduce(const void* send, void* receive, std::size_t count, DataType type,
                          Reduction reduction, void* stream, Duration timeout = default_timeout);
  Result<void> broadcast(const void* send, void* receive, std::size_t count, DataType type,
                         int root, void* stream, Duration timeout = default_timeout);
  Result<void> reduce(const void* send, void* receive, std::size_t count, DataType type,
                      Reduction reduction, int root, void* stream,
                      Duration timeout = default_timeout);
  /// receive  `world_size() * send_count` elements
  Result<void> all_gather(const void* send, void* receive, std::size_t send_count, DataType type,
                          void* stream, Duration timeout = default_timeout);
  /// send  `world_size() * receive_count` elements
  Result<void> reduce_scatter(const void* send, void* receive, std::size_t receive_count,
                              DataType type, Reduction reduction, void* stream,
                              Duration timeout = default_timeout);
  /// send, receive  `world_size() * count` elements each
  ///
  /// errors  invalid_argument (the same buffer, and more than one rank)
  Result<void> all_to_all(const void* send, void* receive, std::size_t count, DataType type,
                          void* stream, Duration timeout = default_timeout);
  /// receive  at the root: `world_size() * count` elements
  Result<void> gather(const void* send, void* receive, std::size_t count, DataType type, int root,
                      void* stream, Duration timeout = default_timeout);
  /// send  at the root: `world_size() * count` elements
  Result<void> scatter(const void* send, void* receive, std::size_t count, DataType type, int root,
                       void* stream, Duration timeout = default_timeout);

  // The same where the parts of the ranks differ in size, as those of a batch that does not divide
  // evenly. counts: the elements of each rank's part, the same on all ranks; some may be 0. In the
  // larger buffer the parts lie one behind the other, in the order of the ranks.
  //
  // errors  invalid_argument (not one count for each rank)
  // cost    NCCL: one group of broadcasts, reductions, or sends and receives

  /// send     this rank's part
  /// receive  all parts
  Result<void> all_gather_v(const void* send, void* receive, Span<const std::size_t> counts,
                            DataType type, void* stream, Duration timeout = default_timeout);
  /// send     all parts
  /// receive  this rank's part, reduced
  Result<void> reduce_scatter_v(const void* send, void* receive, Span<const std::size_t> counts,
                                DataType type, Reduction reduction, void* stream,
                                Duration timeout = default_timeout);
  /// send     this rank's part
  /// receive  at the root: all parts
  Result<void> gather_v(const void* send, void* receive, Span<const std::size_t> counts,
                        DataType type, int root, void* stream, Duration timeout = default_timeout);
  /// send     at the root: all parts
  /// receive  this rank's part
  Result<void> scatter_v(const void* send, void* receive, Span<const std::size_t> counts,
                         DataType type, int root, void* stream, Duration timeout = default_timeout);

  /// Between two ranks: each send meets a receive of the same count and type. With Gloo it blocks
  /// until the other rank has called its part, which is not this rank itself.
  Result<void> send(const void* buffer, std::size_t count, DataType type, int peer, void* stream,
                    Duration timeout = default_timeout);
  Result<void> recv(void* buffer, std::size_t count, DataType type, int peer, void* stream,
                    Duration timeout = default_timeout);

  /// Runs `calls`, and begins all sends and receives that it makes on this communicator together.
  /// Sends and receives that wait for each other need it.
  ///
  /// NCCL: all operations inside go into one group (ncclGroupStart, ncclGroupEnd); `calls` must not
  /// call another communicator. Gloo: waits for the sends and receives after `calls` has returned;
  /// collectives inside run at once.
  ///
  /// NCCL: all or nothing. When a call inside fails, or `calls` does, or throws, then nothing of it
  /// is issued, and `grouped` gives the first of these failures. The communicator then ends
  /// (aborted) if NCCL had taken a call already; else, and in NCCL's blocking mode, it goes on.
  ///
  /// Gloo: the communicator ends (aborted) if `calls` throws after a send or a receive has begun.
  ///
  /// An exception of `calls` goes to the caller.
  ///
  /// errors  invalid_argument (an empty `calls`), those of `calls`
  Result<void> grouped(const std::function<Result<void>()>& calls,
                       Duration timeout = default_timeout);

  /// Watches another group for losses, after the store was reopened and the same processes formed a
  /// group again: the same ranks, under any name and over any store. Collective. The handle of the
  /// group before must live until this returns.
  ///
  /// errors  mismatch (ranks: another process than before), those of a collective. The communicator
  ///         does not change then
  /// cost    one round trip
  Result<void> attach(StatelessProcessGroup& group, Duration timeout = default_timeout);

  /// Ends it now, without waiting: calls in progress return `aborted`, and so do later calls. With
  /// NCCL the operations on its streams end. Does nothing if it has ended.
  ///
  /// threads  any
  void abort();
  /// Aborts several together. NCCL: those of one device in one NCCL group, because one after the
  /// other may hang on each other's kernels.
  static void abort_all(Span<Communicator* const> communicators);

  /// Ends it in order. All ranks call it; with NCCL when their streams are done. With NCCL a rank
  /// that leaves the group afterwards first passes a barrier: ranks that have not called `close`
  /// yet would see it leave.
  ///
  /// Blocks until all ranks are done, or the timeout has passed; then it is aborted.
  Result<void> close(Duration timeout = default_timeout);

  class Impl;
  /// For the libraries that make communicators.
  explicit Communicator(std::shared_ptr<Impl> impl);
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  void release();
  std::shared_ptr<Impl> impl_;
};

MUSTER_END_NAMESPACE
