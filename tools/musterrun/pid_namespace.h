#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "base/file_handle.h"
#include "launch/options.h"

namespace musterrun {

/// The first process of a PID namespace: when it ends, however that is, the kernel kills the
/// others.
struct NamespaceFork {
  pid_t pid = -1;       ///< of the child, as this process sees it; -1: there is none
  std::string problem;  ///< why there is none, for people
};

/// Forks a child that is the first process of a new PID namespace, with a /proc of its own. This
/// process must be a subreaper without threads.
///
/// wanted  always: as its own administrator in a user namespace where it may not without; not never
/// body    what the child runs instead of returning; it takes the /proc of this process
NamespaceFork fork_into_namespace(
    muster::launch::PidNamespace wanted,
    const std::function<int(muster::base::FileHandle outer_proc)>& body);

/// The pid that the processes of another /proc know a child of this one by.
///
/// outer_proc  that /proc; without it the pids are the same
pid_t outer_pid_of(pid_t pid, const muster::base::FileHandle& outer_proc);

}  // namespace musterrun
