#pragma once

#include <optional>

#include "muster/nccl_id.h"

namespace muster::nccl_internal {

// The socket at which NCCL listens, in the process that made an id, for the ranks of its
// communicator. NCCL tells nobody of it and gives no way to close it: an id that is never used
// would keep a thread and a socket, and a child that is exec'd inherits the socket.
//
// How an id looks inside is NCCL's own affair (seen in 2.28: 8 random bytes, then the socket's
// address, then zeros). So the socket counts as found only when the id looks so and exactly one
// listening socket of this process has that address. Else nothing is touched. NCCL closes it when
// it likes: it is looked for each time, and its number kept nowhere.

/// The descriptor; it is NCCL's own.
std::optional<int> find_bootstrap_socket(const nccl::UniqueId& id);

/// Children that are exec'd from now on do not inherit it.
void set_close_on_exec(const nccl::UniqueId& id);

}  // namespace muster::nccl_internal
