#pragma once

#include <chrono>

#include "muster/config.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// Lets the blocking calls of one thread be interrupted by what that thread itself has to look for:
/// for bindings to languages whose interpreters take signals only while they run.
///
/// While this object exists, a blocking call that this thread makes asks `look`, on this
/// thread, each time that it has waited for `period`. At the first true the call is cancelled as by
/// `Call::cancel`: it ends with `cancelled`, or with what became of it before. It does not ask
/// again.
///
/// Objects nest: the last one counts. It is destroyed on the thread that has made it, in reverse
/// order. Calls on the store, on groups, those that are made of them, and the waits of
/// muster-runtime for files and in shared memory are interrupted; so are those for NCCL, in its
/// nonblocking mode, which ends the communicator. Those that end a server
/// (`StatelessProcessGroup::close`, `Server::stop`) give its clients no more time: they stop it,
/// and return the same as when that time is over. Calls in Gloo are not interrupted.
///
/// threads  the one that makes it
/// cost     nothing for a call that ends within `period`; a thread that waits wakes up once in it
class MUSTER_API Interruptible {
 public:
  /// Must not throw, and must not call into Muster.
  using IsInterrupted = bool (*)(void* argument) noexcept;

  /// period  at least 1 ms and at most an hour: others are cut to these
  explicit Interruptible(IsInterrupted look, void* argument = nullptr,
                         Duration period = std::chrono::milliseconds(50)) noexcept;
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  /// The one that counts on this thread; null: none.
  static const Interruptible* current() noexcept;

  Duration period() const noexcept { return period_; }
  bool is_interrupted() const noexcept { return is_interrupted_(argument_); }

 private:
  const IsInterrupted is_interrupted_;
  void* const argument_;
  const Duration period_;
  const Interruptible* const outer_;
};

MUSTER_END_NAMESPACE
