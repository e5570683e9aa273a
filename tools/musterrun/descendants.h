#pragma once

#include <sys/types.h>

#include <vector>

namespace musterrun {

struct Descendant {
  pid_t pid = 0;
  char state = '?';  ///< as /proc says it: 'D' waits in the kernel and cannot be killed now
};

/// The processes below this one, whatever sessions they have made, that have not ended. What forks
/// meanwhile may be missing.
std::vector<Descendant> descendants();

/// Takes the status of children that have ended. Stops before one of those in `kept`, which
/// somebody else waits for.
///
/// returns  whether no child is left
bool reap_children(const std::vector<pid_t>& kept);

/// Kills all descendants until none is left, or only those that do not end; takes their statuses.
/// Blocks for at most three seconds.
///
/// returns  those that are left
std::vector<Descendant> kill_descendants();

}  // namespace musterrun
