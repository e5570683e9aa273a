#pragma once

#include <gloo/context.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "gloo/endpoint.h"
#include "gloo/transport.h"
#include "muster/result.h"

namespace muster::gloo_internal {

/// The connections of one rank to all others, as Gloo has them: a socket for each, and a thread.
///
/// Life cycle: opened (it listens once for each peer) -> every rank has told the others where ->
/// connected -> used by Gloo's algorithms, one call at a time -> gone, which closes the sockets.
class Mesh {
 public:
  /// errors  gloo
  static Result<std::shared_ptr<Mesh>> open(const Endpoint& endpoint, int rank, int world_size);

  /// Where each peer finds this rank, as Gloo writes it; empty for the rank itself.
  const std::vector<std::string>& addresses() const { return addresses_; }

  /// Blocks until all are connected, or `give_up` was called: Gloo's own time limits do not hold
  /// where it listens.
  ///
  /// theirs  where this rank finds each peer
  /// errors  gloo, aborted
  Result<void> connect(const std::vector<std::string>& theirs);
  /// `connect` begins with no further peer.
  void begin_no_more() { is_given_up_ = true; }
  /// Lets `connect` go, from any thread, where it waits for a peer to come. Where it goes to a peer
  /// itself the system ends it: a connection that is reset just after it was made would end the
  /// peer's process, in which Gloo then throws on a thread of its own. So does a socket that
  /// listens and is closed just when the peer connects to it: first give it some time.
  void give_up();
  /// Closes all connections under who still uses them.
  void cut();
  /// In a forked child, once: its copies of the sockets. The parent's connections live on.
  void close_inherited() const;
  /// Whom `connect` is waiting for.
  int waited_for() const { return connecting_; }

  const std::shared_ptr<::gloo::Context>& context() const { return context_; }
  Transport& transport() const { return *transport_; }

 private:
  Mesh() = default;
  std::vector<int> sockets() const;
  void close_on_exec() const;
  void close(int peer);

  std::shared_ptr<::gloo::Context> context_;
  std::shared_ptr<Transport> transport_;
  std::vector<std::string> addresses_;
  std::vector<std::string> theirs_;  ///< since `connect`
  std::atomic<int> connecting_{-1};
  std::atomic<int> listening_for_{-1};
  std::atomic<bool> is_given_up_{false};
};

/// An error with Gloo's text.
Error gloo_error(const std::string& said);

}  // namespace muster::gloo_internal
