#pragma once

// NCCL communicators: device memory. They are in the library muster-nccl (CMake: Muster::nccl).
// Building with it needs neither CUDA nor NCCL: both are loaded when the first communicator is
// made.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/communicator.h"
#include "muster/config.h"
#include "muster/nccl_functions.h"
#include "muster/process_group.h"
#include "muster/result.h"
#include "muster/span.h"

MUSTER_BEGIN_NAMESPACE

namespace nccl {

/// Where NCCL works on a call: for the whole life of a communicator.
enum class Mode : std::uint8_t {
  nonblocking,  ///< on a thread of its own; the call asks until it is done
  /// On the caller's thread, which takes less of the host's time. When the time is up, or the
  /// communicator ends, another thread aborts it. A call that NCCL refuses does not end it.
  blocking,
};

struct Options : CommunicatorOptions {
  Mode mode = Mode::nonblocking;
  /// Runs one small collective before `create` returns. NCCL makes the connections for collectives
  /// in the first one only, which waits for all ranks: in groups that overlap in a ring, where each
  /// rank first calls the one that is its own, that would be for ever. It does so anew in the first
  /// one that takes another of its algorithms, as one of another size may. The same on all ranks.
  bool warm_up = true;
  /// The most CTAs that NCCL may use for one operation; 0: NCCL decides. The same on all ranks.
  int ctas_max = 0;
  /// The paths of libnccl and of the driver's libcuda. Empty: the libnccl.so.2 that is loaded
  /// already, else the one that the dynamic linker finds; libcuda.so.1. They stay loaded.
  std::string nccl_library;
  std::string cuda_library;
  /// Functions to use instead of loading a library, for a host that links NCCL statically. They
  /// must outlive the communicator.
  const Functions* nccl = nullptr;
  const CudaFunctions* cuda = nullptr;
};

/// Makes the communicator of a group's epoch. Collective: all ranks of the group call it.
///
/// Blocks until all ranks have it, or none will. A rank that is missing, differs or shares a device
/// is found before NCCL is called. No rank gets a communicator that another rank does not have.
///
/// device  the CUDA ordinal of this rank's device
/// errors  timed_out (ranks: those that did not come; inside NCCL, which does not report whom it
///         waits for: all that waited when the time was up), rank_lost, rank_left,
///         library_missing and no_device (ranks: where; detail: what was looked for),
///         duplicate_device (ranks: those that share one), mismatch (ranks: with another NCCL or
///         other options), nccl (ranks: where; actual, detail), resource_exhausted (8 attempts of
///         this process have failed inside NCCL, which leaks then: see `failed_attempts`)
/// threads as a collective of the group; not from an inline handler
/// cost    three round trips and the time that NCCL needs
/// see     docs/nccl.md
MUSTER_API Result<Communicator> create(StatelessProcessGroup& group, int device,
                                       Options options = {});

// The following calls are for NCCL communicators only. One of another kind gets invalid_argument.

/// The CUDA ordinal of its device.
MUSTER_API Result<int> device(const Communicator& communicator);

/// Lends the ncclComm_t while `work` runs; NCCL's calls on it are as `Options::mode` says. An abort
/// waits for `work`, but not longer than `abort_timeout`. What `work` issues must have finished
/// using the handle when `work` returns.
///
/// errors  those of `work`, invalid_argument (an empty `work`)
MUSTER_API Result<void> with_native(Communicator& communicator,
                                    const std::function<Result<void>(Handle handle)>& work,
                                    Duration timeout = default_timeout);

/// The ncclComm_t, for kernels and graphs that use it on their own. NCCL's calls on it are as
/// `Options::mode` says. The host stops them before it aborts or closes the communicator.
///
/// errors  invalid_argument (not with OnLoss::notify: a loss would destroy the handle while they
///         use it)
MUSTER_API Result<Handle> native_handle(const Communicator& communicator);

/// Hands issuing over: from now on another thread may be the one that issues operations to the
/// communicator's device, with all communicators of the same nccl::Communicators. For executors
/// whose tasks run on any thread, at the end of each task; which task comes first is the host's to
/// see to, and the same on all ranks. Does nothing if no thread has issued.
///
/// errors  would_deadlock (another thread has issued since; nothing was handed over),
///         invalid_argument (inside a call of this thread on the device, such as `grouped`)
/// threads the one that has issued
MUSTER_API Result<void> release_issuer(const Communicator& communicator);

/// One of several communicators that are made at once.
struct Request {
  StatelessProcessGroup* group = nullptr;
  int device = 0;
  Options options;
};

/// The NCCL communicators of a host, by group, epoch and rank. The host owns this object; nothing
/// is shared across the process. In a forked child it is empty, and `create` gives `forked`.
///
/// threads  any
class MUSTER_API Communicators {
 public:
  Communicators();
  /// Aborts all, without waiting.
  ~Communicators();
  Communicators(Communicators&&) noexcept;
  Communicators& operator=(Communicators&&) noexcept;

  /// As nccl::create. This object keeps the communicator.
  Result<std::shared_ptr<Communicator>> create(StatelessProcessGroup& group, int device,
                                               Options options = {});
  /// Makes all at once, each on its own thread: groups that overlap in a ring cannot wait for each
  /// other. One outcome per request, in the same order.
  std::vector<Result<std::shared_ptr<Communicator>>> create_all(Span<const Request> requests);

  /// The communicator of the group's current epoch; null: there is none, or it was dropped.
  std::shared_ptr<Communicator> find(const StatelessProcessGroup& group) const;
  /// All that are kept, in no order, including those of epochs that their groups have left.
  std::vector<std::shared_ptr<Communicator>> all() const;
  /// Forgets the communicator of the group's current epoch. It is aborted when nobody else holds
  /// it.
  void drop(const StatelessProcessGroup& group);
  /// Forgets those that have ended, such as that of an epoch in which a rank was lost.
  ///
  /// returns  how many
  std::size_t drop_ended();
  std::size_t count() const;

  /// Aborts all, as Communicator::abort_all.
  void abort_all();

  class Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

/// How many attempts of this process to make a communicator have failed inside NCCL. Each one
/// leaves a thread, some descriptors and about 1 MB that NCCL does not free. After 8 `create`
/// refuses, until `forgive_attempts` is called.
MUSTER_API int failed_attempts();
MUSTER_API void forgive_attempts();
/// How many handles of this process were given up because NCCL did not return from their abort, or
/// refused it.
MUSTER_API int given_up_handles();

}  // namespace nccl

MUSTER_END_NAMESPACE
