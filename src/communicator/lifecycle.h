#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "communicator/gate.h"
#include "muster/communicator.h"
#include "muster/process_group.h"

namespace muster::communicator {

/// Watches the group of a communicator for losses, and keeps the one reason why it ended.
///
/// threads  any
class Lifecycle : public std::enable_shared_from_this<Lifecycle> {
 public:
  using Clock = std::chrono::steady_clock;
  using Callback = std::function<void(const Error& error)>;

  Lifecycle(OnLoss on_loss, Callback on_end);

  const std::shared_ptr<Gate>& gate() const { return gate_; }

  /// From now on a loss calls `end`, which is to call `close`; or the host is notified.
  void watch(StatelessProcessGroup& group, Callback end);
  /// When it returns, `end` does not run any more.
  void unwatch();
  /// All ranks have the communicator: from now on the host is notified.
  ///
  /// returns  why it has ended already, if it has; then the host is never notified
  std::optional<Error> commit(CreationTimes times);
  CreationTimes creation_times() const { return creation_times_; }

  /// Ends it. The first reason counts.
  ///
  /// returns  whether this was the first; the caller then releases what blocks other threads, and
  ///          calls `notify_host`
  bool close(Error why);
  /// Tells the host why it ended. Exceptions of the host's handler are dropped.
  void notify_host() const;

  /// From now on a rank that leaves does not end it: ranks that have closed leave their group.
  void begin_closing() { is_closing_ = true; }

  /// Waits until it has ended, or a loss was heard that may explain a failed call. The connections
  /// of NCCL and Gloo fail before the store knows which rank is gone.
  ///
  /// since    when the call began: losses heard before count only if they are the peer's
  /// peer     the rank that the call waited for; -1: not known
  /// returns  why it ended; else the peer's loss; else the last loss; nothing after `limit`, or as
  ///          soon as `hears_losses` is false
  std::optional<Error> await_cause(Duration limit,
                                   Clock::time_point since = Clock::time_point::min(),
                                   int peer = -1);
  /// False: the handle that is watched has ended, so no loss will be told until another one is
  /// watched.
  bool hears_losses();

 private:
  struct Loss {
    Error error;
    Clock::time_point heard;
  };

  void hear(const Error& error, const Callback& end);
  /// Needs `cause_mutex_`. Null: there is none.
  const Loss* find_loss(Clock::time_point since, int peer) const;
  void notify(const Error& why) const;

  const OnLoss on_loss_;
  const Callback on_end_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::mutex commit_mutex_;
  CreationTimes creation_times_;
  std::atomic<bool> is_committed_{false};
  std::atomic<bool> is_closing_{false};
  std::mutex watch_mutex_;
  GroupWatch watch_;
  std::mutex cause_mutex_;
  std::condition_variable cause_came_;
  std::vector<Loss> losses_;  ///< in the order in which they were heard
  bool hears_losses_ = true;
};

}  // namespace muster::communicator
