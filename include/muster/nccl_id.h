#pragma once

// Optional: the ids with which the ranks of a group open an NCCL communicator. It is a library of
// its own, muster-nccl (CMake: Muster::nccl). Building with it needs neither CUDA nor NCCL: the
// process loads libnccl when it first makes an id. A GPU is not needed for that.

#include <array>
#include <optional>
#include <string>

#include "muster/config.h"
#include "muster/process_group.h"
#include "muster/result.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

namespace nccl {

/// The bytes of an ncclUniqueId: copy them into its `internal`. Whoever has them can take part in
/// the communicator's set-up, so they are for the members alone.
using UniqueId = std::array<char, 128>;

struct IdOptions {
  /// An id that was made elsewhere, to be taken instead of a new one. One rank brings it, or
  /// several the same; not all zero.
  std::optional<UniqueId> id;
  /// The path of libnccl; empty: the libnccl.so.2 that is loaded already, else the one that the
  /// dynamic linker finds. It stays loaded.
  std::string library;
};

/// Agrees on the id of one new communicator for the ranks of this epoch. Collective.
///
/// Blocks until all ranks have called it and the lowest of them, which is rank 0, has made the id
/// by libnccl's ncclGetUniqueId: not before all are there. Each call gives another id, which
/// serves one communicator; nothing but the group, its epoch and its collectives so far decides
/// which call belongs to which, and no key is left behind.
///
/// NCCL listens for the id's ranks in rank 0's process, with a thread and a socket, until all have
/// used it or it is given up. The socket is set close-on-exec as soon as it is there, which NCCL
/// itself does not do: a child that another thread exec'd in between has inherited it.
///
/// timeout  of the whole call, above zero and not `default_timeout`
/// returns  the same 128 bytes on every rank. A rank that has them does not know whether those
///          behind it do: a communicator may still not come about
/// errors   those of a collective, above all timed_out (ranks: not come) and rank_lost; then
///          regroup, since some ranks may have the id: no communicator will come of it.
///          And, with `ranks` rank 0 everywhere, what went wrong in its process: library_missing
///          (detail: what was looked for), nccl (actual: its ncclResult_t; detail: what it said, or
///          that NCCL_COMM_ID is set there, which makes all ids one), timed_out,
///          resource_exhausted. mismatch (ranks: who brought another id than the first who brought
///          one), invalid_argument (ranks: who brought an id that is all zero)
/// threads  as every collective of the group: one at a time. Blocking, not from an inline handler
/// cost     two round trips; one when an id is brought. Making an id takes NCCL about 1 ms
/// see      docs/nccl.md; ncclGetUniqueId
MUSTER_API Result<UniqueId> unique_id(StatelessProcessGroup& group, Duration timeout,
                                      IdOptions options = {});

/// Ends an id that no communicator will come of, in the process that made it: NCCL's thread and
/// socket for it go, and whoever still uses it is refused. `unique_id` does so by itself when
/// it fails in that process.
///
/// returns  whether it was done: not in another process, not when the id was used up, and not when
///          the id looks otherwise than NCCL's do, or not exactly one listening socket of the
///          process is the one that it names; nothing is touched then
/// threads  any
/// cost     a look at each descriptor of the process
MUSTER_API bool give_up(const UniqueId& id);

}  // namespace nccl

MUSTER_END_NAMESPACE
