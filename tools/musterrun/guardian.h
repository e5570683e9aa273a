#pragma once

#include "base/file_handle.h"
#include "muster/types.h"
#include "own_folder.h"

namespace musterrun {

struct GuardianOptions {
  muster::base::FileHandle socket;        ///< to musterrun
  muster::Duration shutdown_timeout{};    ///< for the processes, when musterrun is gone
  const OwnFolder* own_folder = nullptr;  ///< is removed when musterrun is gone
  /// In a PID namespace of its own: the /proc of musterrun, which has other pids.
  muster::base::FileHandle outer_proc;
};

/// The guardian's whole life, in a process of its own that musterrun has forked: it starts the
/// ranks, each in a session of its own, and is the parent of whatever they leave behind. When
/// musterrun orders it, or is gone, it ends all of them.
///
/// returns  its exit code
int run_guardian(GuardianOptions options);

}  // namespace musterrun
