#pragma once

#include "muster/nccl.h"

namespace muster::nccl {

/// The socket at which NCCL listens, in the process that made an id, for the ranks of its
/// communicator. NCCL tells nobody of it and gives no way to close it: an id that is never used
/// would keep a thread and a socket, and a child that is exec'd inherits the socket.
///
/// How an id looks inside is NCCL's own affair (seen in 2.18 to 2.30: 8 random bytes, then the
/// socket's address, then zeros). So the socket counts as found only when the id looks so and
/// exactly one listening socket of this process has that address. Else nothing is touched.
class BootstrapSocket {
 public:
  explicit BootstrapSocket(const NcclUniqueId& id);

  bool is_found() const { return socket_ >= 0; }

  /// Children that are exec'd do not inherit it.
  void close_on_exec() const;

  /// Ends the id: NCCL's thread sees that nobody can come any more, ends and closes the socket.
  void give_up() const;

 private:
  int socket_ = -1;  // NCCL's own
};

}  // namespace muster::nccl
