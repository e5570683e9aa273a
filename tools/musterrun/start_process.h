#pragma once

#include <signal.h>
#include <sys/types.h>

#include <array>

#include "messages.h"

namespace musterrun {

/// Which ranks are not to inherit; signals that have handlers are as ever in a new program.
inline constexpr int signals_ignored_by_guardian[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                                      SIGPIPE, SIGXFSZ, SIGUSR1, SIGUSR2};

/// Of what `start_process` started.
struct StartedProcess {
  pid_t pid = -1;  ///< -1: it did not
  Report::Step step = Report::Step::text;
  int error = 0;
};

/// Starts a program in a session of its own. It is killed when the calling thread ends.
///
/// order        how many strings the text has
/// descriptors  as `start_descriptor_count` says
/// outer_proc   where pids are those of the host, if they differ: MUSTER_HOST_PID says them
StartedProcess start_process(
    const Order& order, std::array<muster::base::FileHandle, start_descriptor_count>& descriptors,
    const muster::base::FileHandle& outer_proc);

/// The limit on descriptors that this process had when it started, which ranks get.
void remember_descriptor_limit();

}  // namespace musterrun
