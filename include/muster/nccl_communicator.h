#pragma once

// NCCL communicators for the groups of Muster, in the library muster-nccl. Building with it needs
// neither CUDA nor NCCL: both are loaded when the first communicator is made.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/communicator.h"
#include "muster/config.h"
#include "muster/nccl_functions.h"
#include "muster/process_group.h"
#include "muster/result.h"
#include "muster/span.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

struct NcclOptions {
  /// Of `create`, and of every call that is given `default_timeout`; above zero.
  Duration timeout{std::chrono::seconds(300)};
  OnLoss on_loss = OnLoss::abort;
  /// Told once, when the communicator is over, why; with OnLoss::notify of every loss. Runs on the
  /// store's I/O thread or on the thread that found out; it must not block.
  std::function<void(const Error& error)> on_over;
  /// Runs one small collective before `create` returns, so that NCCL connects what it else would
  /// connect in the first call. The same on all ranks.
  bool warm_up = false;
  /// The most CTAs that NCCL may use for one operation; 0: as it likes. The same on all ranks.
  int ctas_max = 0;
  /// The paths of libnccl and of the driver's libcuda; empty: the libnccl.so.2 that is loaded, else
  /// what the dynamic linker finds; libcuda.so.1. They stay loaded.
  std::string nccl_library;
  std::string cuda_library;
  /// In place of loading one: of a host that links NCCL statically. They must outlive the
  /// communicator.
  const NcclFunctions* nccl = nullptr;
  const CudaFunctions* cuda = nullptr;
  /// For how long NCCL may take over an abort before its handle is given up.
  Duration abort_patience{std::chrono::seconds(10)};
};

/// One NCCL communicator of the ranks of one epoch of a group.
///
/// Its group is watched: a rank that is lost or leaves ends the communicator on all others at once
/// (OnLoss), and so does the end of this rank's handle of the group, or of one that was attached
/// since (closed). What befalls the store alone (suspended, unavailable, server_restarted) does not
/// touch it.
///
/// Buffers are device memory, streams belong to the communicator's device; a call returns when the
/// operation is on the stream. Calls leave the caller's current device as it was.
///
/// errors   of every call, beside its own: what ended the communicator (rank_lost, rank_left,
///          closed, aborted, timed_out, nccl: `actual` is its ncclResult_t), invalid_argument
///          (types, ranks, null buffers), forked (this is a child of the process that made it)
/// threads  `abort` and queries: any, at any time. `close` and `attach`: any. What issues
///          (collectives, send, recv, grouped, with_native): one thread per device, the first that
///          called, until it ends; others get would_deadlock, since NCCL may hang then. With
///          NCCL_LAUNCH_ORDER_IMPLICIT=1 in the environment any thread. Calls on one device take
///          turns: one whose turn does not come in time gives timed_out and has issued nothing.
///          All this holds for the communicators of one NcclCommunicators; one that was made alone
///          knows of no other, and its host keeps the order
class MUSTER_API NcclCommunicator {
 public:
  /// Makes the communicator of a group's epoch. Collective: all ranks of the group call it.
  ///
  /// Blocks until all have it, or none will. Who is missing, differs or shares a device is found
  /// before NCCL is entered; no rank gets a communicator that not all others have.
  ///
  /// device  the CUDA ordinal of this rank's device
  /// errors  timed_out (ranks: not come; or, inside of NCCL, which does not say whom it waits for,
  ///         all who waited when the time was up), rank_lost, rank_left,
  ///         library_missing and no_device (ranks: where; detail: what was looked for),
  ///         duplicate_device (ranks: who share one), mismatch (ranks: with another NCCL or other
  ///         options), nccl (ranks: where; actual, detail), resource_exhausted (8 attempts of this
  ///         process have failed inside NCCL, which leaks then: see nccl_failed_attempts)
  /// threads as a collective of the group. Not from an inline handler
  /// cost    three round trips and what NCCL takes
  /// see     docs/nccl.md
  static Result<NcclCommunicator> create(StatelessProcessGroup& group, int device,
                                         NcclOptions options = {});

  /// Aborts, without waiting.
  ~NcclCommunicator();
  NcclCommunicator(NcclCommunicator&&) noexcept;
  NcclCommunicator& operator=(NcclCommunicator&&) noexcept;

  int rank() const;
  int world_size() const;
  int device() const;
  const std::string& group() const;  ///< its name
  std::uint64_t epoch() const;
  MakingTimes making() const;
  /// Why it is over, if it is. Asks NCCL, too, if no other thread is in a call: a host that waits
  /// for a stream for long learns here that NCCL cannot go on. Where NCCL only says that some peer
  /// is gone, the store has 5 s to say who before the communicator ends for it.
  std::optional<Error> error() const;

  // Collectives: all ranks call them in one order, with the same count, type, operation and root.
  // `send` and `receive` may be the same buffer where NCCL allows it.

  Result<void> all_reduce(const void* send, void* receive, std::size_t count, DataType type,
                          ReduceOp operation, CudaStream stream,
                          Duration timeout = default_timeout);
  Result<void> broadcast(const void* send, void* receive, std::size_t count, DataType type,
                         int root, CudaStream stream, Duration timeout = default_timeout);
  Result<void> reduce(const void* send, void* receive, std::size_t count, DataType type,
                      ReduceOp operation, int root, CudaStream stream,
                      Duration timeout = default_timeout);
  /// receive  of `world_size() * send_count` elements
  Result<void> all_gather(const void* send, void* receive, std::size_t send_count, DataType type,
                          CudaStream stream, Duration timeout = default_timeout);
  /// send  of `world_size() * receive_count` elements
  Result<void> reduce_scatter(const void* send, void* receive, std::size_t receive_count,
                              DataType type, ReduceOp operation, CudaStream stream,
                              Duration timeout = default_timeout);
  /// send, receive  of `world_size() * count` elements; not the same buffer
  Result<void> all_to_all(const void* send, void* receive, std::size_t count, DataType type,
                          CudaStream stream, Duration timeout = default_timeout);
  /// receive  at the root, of `world_size() * count` elements
  Result<void> gather(const void* send, void* receive, std::size_t count, DataType type, int root,
                      CudaStream stream, Duration timeout = default_timeout);
  /// send  at the root, of `world_size() * count` elements
  Result<void> scatter(const void* send, void* receive, std::size_t count, DataType type, int root,
                       CudaStream stream, Duration timeout = default_timeout);

  /// Between two ranks: each send meets a receive of the same count and type.
  Result<void> send(const void* buffer, std::size_t count, DataType type, int peer,
                    CudaStream stream, Duration timeout = default_timeout);
  Result<void> recv(void* buffer, std::size_t count, DataType type, int peer, CudaStream stream,
                    Duration timeout = default_timeout);

  /// Issues all calls that `calls` makes on this communicator, and on no other, as one
  /// (ncclGroupStart, ncclGroupEnd): sends and receives that wait for each other need it.
  Result<void> grouped(const std::function<Result<void>()>& calls,
                       Duration timeout = default_timeout);

  /// Lends the ncclComm_t for as long as `work` runs: an abort waits for it, but not longer than
  /// `abort_patience`. What `work` issues must be done with it when it returns.
  Result<void> with_native(const std::function<Result<void>(NcclHandle handle)>& work,
                           Duration timeout = default_timeout);
  /// The ncclComm_t, for kernels and graphs that use it on their own; the host ends that before it
  /// aborts or closes.
  ///
  /// errors  invalid_argument (not with OnLoss::notify: else it would go under their feet)
  Result<NcclHandle> native_handle() const;

  /// Arms the watch of losses anew, after the store was reopened and the same processes have formed
  /// a group again: of the same ranks, under any name and over any store. Collective. The handle of
  /// the group before is to live until this returns.
  ///
  /// errors  mismatch (ranks: another process than before), those of a collective. The communicator
  ///         stays as it is
  /// cost    one round trip
  Result<void> attach(StatelessProcessGroup& group, Duration timeout = default_timeout);

  /// Ends it now: calls inside leave and give `aborted`, as later ones do; what hangs on its
  /// streams ends. NCCL's part runs on a thread of its own. Again: nothing.
  ///
  /// threads  any
  void abort();
  /// The same for several, and those of one device in one NCCL group: one after the other may hang
  /// on each other's kernels.
  static void abort_all(Span<NcclCommunicator* const> communicators);

  /// Ends it in order (ncclCommFinalize, ncclCommDestroy): all ranks call it, when their streams
  /// are done. A rank passes a barrier before it leaves the group afterwards; else those that have
  /// not called it yet see it leave.
  ///
  /// Blocks until NCCL is done or the timeout has passed; then it is aborted.
  Result<void> close(Duration timeout = default_timeout);

  class Impl;

 private:
  friend class NcclCommunicators;
  void let_go();
  explicit NcclCommunicator(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

/// One of several communicators to be made at once.
struct NcclRequest {
  StatelessProcessGroup* group = nullptr;
  int device = 0;
  NcclOptions options;
};

/// The communicators of a host, by group, epoch and rank: an object of the host's, none of the
/// process. In a forked child there are none, and `create` gives `forked`.
///
/// threads  any
class MUSTER_API NcclCommunicators {
 public:
  NcclCommunicators();
  /// Aborts all, without waiting.
  ~NcclCommunicators();
  NcclCommunicators(NcclCommunicators&&) noexcept;
  NcclCommunicators& operator=(NcclCommunicators&&) noexcept;

  /// As NcclCommunicator::create; this object keeps it, and gives it to whoever asks.
  Result<std::shared_ptr<NcclCommunicator>> create(StatelessProcessGroup& group, int device,
                                                   NcclOptions options = {});
  /// All of them at once, each on a thread: groups that overlap in a ring cannot wait for each
  /// other. One outcome per request, in their order.
  std::vector<Result<std::shared_ptr<NcclCommunicator>>> create_all(
      Span<const NcclRequest> requests);

  /// That of the group's epoch now. Null: there is none, or it was dropped.
  std::shared_ptr<NcclCommunicator> find(const StatelessProcessGroup& group) const;
  /// All that are kept, in no order; also of epochs that their groups have left.
  std::vector<std::shared_ptr<NcclCommunicator>> all() const;
  /// Forgets that of the group's epoch now; the last who holds it aborts it.
  void drop(const StatelessProcessGroup& group);
  /// Forgets those that are over: of a group that was formed again without a rank that was lost,
  /// the one before.
  ///
  /// returns  how many
  std::size_t drop_ended();
  std::size_t count() const;

  /// Aborts all, those of one device together.
  void abort_all();

  class Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

/// How many attempts of this process to make a communicator have failed inside NCCL. Each of them
/// leaves NCCL with a thread, some descriptors and about 1 MB that it does not free; after 8
/// `create` refuses, until they are forgiven.
MUSTER_API int nccl_failed_attempts();
MUSTER_API void nccl_forgive_attempts();
/// How many handles were given up since NCCL did not return from their abort, or refused it.
MUSTER_API int nccl_given_up_handles();

MUSTER_END_NAMESPACE
