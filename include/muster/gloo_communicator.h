#pragma once

// Gloo communicators for the groups of Muster, on host memory, in the library muster-gloo. The same
// calls as those of muster/nccl_communicator.h; which of the two a program uses is its own choice,
// never made silently.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "muster/communicator.h"
#include "muster/config.h"
#include "muster/process_group.h"
#include "muster/result.h"
#include "muster/span.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

struct GlooOptions {
  /// Of `create`, and of every call that is given `default_timeout`; above zero.
  Duration timeout{std::chrono::seconds(300)};
  OnLoss on_loss = OnLoss::abort;
  /// Told once, when the communicator is over, why; with OnLoss::notify of every loss. Runs on the
  /// store's I/O thread or on the thread that found out; it must not block.
  std::function<void(const Error& error)> on_over;
  /// Where this rank listens for the others: an interface such as "eth0", or an address or name of
  /// this host. At most one of them; none: the address from which it reaches the store's server.
  std::string interface;
  std::string address;
  /// For how long those who are inside may take to leave before their connections are closed under
  /// them.
  Duration abort_patience{std::chrono::seconds(10)};
};

/// One Gloo communicator of the ranks of one epoch of a group: a TCP connection between each two.
///
/// Its group is watched: a rank that is lost or leaves ends the communicator on all others at once
/// (OnLoss), and so does the end of this rank's handle of the group, or of one that was attached
/// since (closed). What befalls the store alone (suspended, unavailable, server_restarted) does not
/// touch it.
///
/// Buffers are host memory; a call returns when this rank's part is done. `stream` is for programs
/// that are written for NcclCommunicator too, and null. A call that fails after it has begun ends
/// the communicator.
///
/// errors   of every call, beside its own: what ended the communicator (rank_lost, rank_left,
///          closed, aborted, timed_out, gloo: `detail` is what it said), invalid_argument (types,
///          ranks, counts, buffers, a stream; nothing was done), busy (another call is under way;
///          nothing was done), forked (this is a child of the process that made it). Ranks that
///          call different operations, counts, types or roots wait for each other: timed_out
/// threads  `abort` and queries: any, at any time; everything else: one at a time
class MUSTER_API GlooCommunicator {
 public:
  /// Makes the communicator of a group's epoch. Collective: all ranks of the group call it.
  ///
  /// Blocks until all have it, or none will. Who is missing or differs is found before the ranks
  /// connect to each other.
  ///
  /// errors  timed_out (ranks: not come, or those who did not finish), rank_lost, rank_left,
  ///         mismatch (ranks: with another Gloo, or an address that the others cannot use),
  ///         invalid_argument (ranks: whose interface or address is none), gloo (ranks: where; also
  ///         where another Gloo, such as PyTorch's, is loaded)
  /// threads as a collective of the group. Not from an inline handler
  /// cost    two round trips, a connection to each other rank, and a thread
  /// see     docs/gloo.md
  static Result<GlooCommunicator> create(StatelessProcessGroup& group, GlooOptions options = {});

  /// Aborts, without waiting.
  ~GlooCommunicator();
  GlooCommunicator(GlooCommunicator&&) noexcept;
  GlooCommunicator& operator=(GlooCommunicator&&) noexcept;

  int rank() const;
  int world_size() const;
  const std::string& group() const;  ///< its name
  std::uint64_t epoch() const;
  MakingTimes making() const;
  /// Why it is over, if it is.
  std::optional<Error> error() const;

  // Collectives: all ranks call them in one order, with the same count, type, operation and root.
  // `send` and `receive` may be the same buffer where they are of the same size, and `send` may be
  // this rank's part of `receive`, or the other way round.

  Result<void> all_reduce(const void* send, void* receive, std::size_t count, DataType type,
                          ReduceOp operation, void* stream, Duration timeout = default_timeout);
  Result<void> broadcast(const void* send, void* receive, std::size_t count, DataType type,
                         int root, void* stream, Duration timeout = default_timeout);
  Result<void> reduce(const void* send, void* receive, std::size_t count, DataType type,
                      ReduceOp operation, int root, void* stream,
                      Duration timeout = default_timeout);
  /// receive  of `world_size() * send_count` elements
  Result<void> all_gather(const void* send, void* receive, std::size_t send_count, DataType type,
                          void* stream, Duration timeout = default_timeout);
  /// send  of `world_size() * receive_count` elements
  Result<void> reduce_scatter(const void* send, void* receive, std::size_t receive_count,
                              DataType type, ReduceOp operation, void* stream,
                              Duration timeout = default_timeout);
  /// send, receive  of `world_size() * count` elements; not the same buffer, unless alone
  ///
  /// errors  invalid_argument (the same buffer)
  Result<void> all_to_all(const void* send, void* receive, std::size_t count, DataType type,
                          void* stream, Duration timeout = default_timeout);
  /// receive  at the root, of `world_size() * count` elements
  Result<void> gather(const void* send, void* receive, std::size_t count, DataType type, int root,
                      void* stream, Duration timeout = default_timeout);
  /// send  at the root, of `world_size() * count` elements
  Result<void> scatter(const void* send, void* receive, std::size_t count, DataType type, int root,
                       void* stream, Duration timeout = default_timeout);

  /// Between two ranks: each send meets a receive of the same count and type.
  ///
  /// Blocks until the other rank has called its part.
  Result<void> send(const void* buffer, std::size_t count, DataType type, int peer, void* stream,
                    Duration timeout = default_timeout);
  Result<void> recv(void* buffer, std::size_t count, DataType type, int peer, void* stream,
                    Duration timeout = default_timeout);

  /// Begins the sends and receives that `calls` makes on this communicator without waiting, and
  /// waits for all of them when it returns: those that wait for each other need it. Collectives
  /// inside of it are done at once.
  ///
  /// An exception of `calls` goes to the caller as it is. If a send or a receive had begun, the
  /// communicator has ended then (aborted).
  ///
  /// errors  invalid_argument (an empty `calls`)
  Result<void> grouped(const std::function<Result<void>()>& calls,
                       Duration timeout = default_timeout);

  /// Arms the watch of losses anew, after the store was reopened and the same processes have formed
  /// a group again: of the same ranks, under any name and over any store. Collective. The handle of
  /// the group before is to live until this returns.
  ///
  /// errors  mismatch (ranks: another process than before), those of a collective. The communicator
  ///         stays as it is
  /// cost    one round trip
  Result<void> attach(StatelessProcessGroup& group, Duration timeout = default_timeout);

  /// Ends it now: calls inside leave and give `aborted`, as later ones do. The sockets are closed
  /// on a thread of its own. Again: nothing.
  ///
  /// threads  any
  void abort();
  static void abort_all(Span<GlooCommunicator* const> communicators);

  /// Ends it in order: all ranks call it.
  ///
  /// Blocks until all have, or the timeout has passed; then it is aborted.
  Result<void> close(Duration timeout = default_timeout);

  class Impl;

 private:
  void let_go();
  explicit GlooCommunicator(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

MUSTER_END_NAMESPACE
