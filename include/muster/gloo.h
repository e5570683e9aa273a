#pragma once

// Gloo communicators: host memory, over TCP. They are in the library muster-gloo
// (CMake: Muster::gloo).

#include <string>

#include "muster/communicator.h"
#include "muster/config.h"
#include "muster/process_group.h"
#include "muster/result.h"

MUSTER_BEGIN_NAMESPACE

namespace gloo {

struct Options : CommunicatorOptions {
  /// Where this rank listens for the others: an interface such as "eth0", or an address or name of
  /// this host. At most one of the two; neither: the address from which it reaches the store's
  /// server.
  std::string interface;
  std::string address;
};

/// Makes the communicator of a group's epoch: a TCP connection between each two ranks. Collective:
/// all ranks of the group call it.
///
/// Blocks until all ranks have it, or none will. A rank that is missing or differs is found before
/// the ranks connect to each other.
///
/// errors  timed_out (ranks: those that did not come, or did not finish), rank_lost, rank_left,
///         mismatch (ranks: with another Gloo, or an address that the others cannot use),
///         invalid_argument (ranks: with an interface or address that does not exist), gloo (ranks:
///         where; also where another Gloo, such as PyTorch's, is loaded)
/// threads as a collective of the group; not from an inline handler
/// cost    two round trips, a connection to each other rank, and a thread
/// see     docs/gloo.md
MUSTER_API Result<Communicator> create(StatelessProcessGroup& group, Options options = {});

}  // namespace gloo

MUSTER_END_NAMESPACE
