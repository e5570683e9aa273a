#pragma once

// Optional: the ids with which the ranks of a group open an NCCL communicator themselves. In the
// library muster-nccl (CMake: Muster::nccl). Building with it needs neither CUDA nor NCCL: the
// process loads libnccl when it first makes an id. That needs no GPU.

#include <array>
#include <optional>
#include <string>

#include "muster/config.h"
#include "muster/process_group.h"
#include "muster/result.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

namespace nccl {

/// The bytes of an ncclUniqueId: copy them into its `internal`. A process that has them can take
/// part in the communicator's set-up, so give them to members only.
using UniqueId = std::array<char, 128>;

struct IdOptions {
  /// An id that was made elsewhere, to use instead of a new one. One rank gives it, or several
  /// ranks give the same one. Not all zero.
  std::optional<UniqueId> id;
  /// The path of libnccl; empty: the libnccl.so.2 that is loaded already, else the one that the
  /// dynamic linker finds. It stays loaded.
  std::string library;
};

/// Agrees on the id of one new communicator for the ranks of this epoch. Collective.
///
/// Blocks until all ranks have called it. Then rank 0 makes the id with libnccl's ncclGetUniqueId
/// and gives it to the others. Each call makes a new id, which serves one communicator. As for
/// every collective, the ranks' n-th calls belong together. No key is left behind.
///
/// In rank 0's process NCCL listens for the ranks, with a thread and a socket, until all ranks have
/// used the id or `give_up` was called. Muster sets the socket close-on-exec as soon as it exists,
/// because NCCL does not. A child that another thread exec'd in between has inherited the socket.
///
/// timeout  of the whole call, above zero and not `default_timeout`
/// returns  the same 128 bytes on every rank. A rank that has them cannot know whether the others
///          have got them, so the communicator may still fail
/// errors   those of a collective, mostly timed_out (ranks: missing) and rank_lost. Then some ranks
///          may have the id, and a communicator with it would never be complete: regroup.
///          Errors of rank 0's process, at all ranks (ranks: 0): library_missing (detail: what was
///          looked for), nccl (actual: its ncclResult_t; detail: NCCL's text, or that NCCL_COMM_ID
///          is set there, which makes all ids equal), timed_out, resource_exhausted.
///          mismatch (ranks: those that gave another id than the first that gave one),
///          invalid_argument (ranks: those that gave an id that is all zero)
/// threads  as every collective of the group: one at a time. Blocking, not from an inline handler
/// cost     two round trips; one if an id is given. NCCL takes about 1 ms to make an id
/// see      docs/nccl.md; ncclGetUniqueId
MUSTER_API Result<UniqueId> unique_id(StatelessProcessGroup& group, Duration timeout,
                                      IdOptions options = {});

/// Ends an id that nobody will use any more, in the process that made it: NCCL's thread and socket
/// end, and later uses of the id fail. `unique_id` does so itself if it fails in that process.
///
/// returns  whether it was done. Not in another process, not if all ranks have used the id, not if
///          the id does not have the form of NCCL's ids, and not if the process does not have
///          exactly one listening socket with the id's address. Nothing changes then
/// threads  any
/// cost     one system call or more for each descriptor of the process
MUSTER_API bool give_up(const UniqueId& id);

}  // namespace nccl

MUSTER_END_NAMESPACE
