#pragma once

#include <chrono>
#include <memory>

#include "muster/result.h"

namespace muster::nccl_internal {

class Impl;

/// Ends communicators in whose blocking calls NCCL takes too long: only an abort makes such a call
/// return.
///
/// threads  any
class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;

  Watchdog();
  /// Without waiting: its thread ends by itself.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Starts its thread, if it has none. Before the first watch.
  ///
  /// errors  resource_exhausted (the system has none)
  Result<void> start();

  /// One call. If this lives still when the time has come, the communicator ends (timed_out).
  class Watch {
   public:
    Watch(Watchdog& watchdog, std::weak_ptr<Impl> impl, Clock::time_point until);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    friend class Watchdog;

    Watchdog& watchdog_;
    const std::weak_ptr<Impl> impl_;
    const Clock::time_point until_;
    bool is_over_ = false;  ///< it has bitten
  };

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
};

}  // namespace muster::nccl_internal
