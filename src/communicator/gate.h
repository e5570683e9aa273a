#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "muster/error.h"
#include "muster/result.h"

namespace muster::communicator {

/// Who is inside a communicator, and why nobody gets in any more.
class Gate {
 public:
  /// Lets its owner out when it goes.
  class Pass {
   public:
    explicit Pass(Gate& gate) : gate_(&gate) {}
    ~Pass();
    Pass(Pass&& other) noexcept;
    Pass& operator=(Pass&&) = delete;

   private:
    Gate* gate_;
  };

  /// errors  why it is closed
  Result<Pass> enter();
  /// The first counts.
  ///
  /// returns  whether it was open
  bool close(const Error& why);
  /// For those inside, who leave at their next look.
  bool is_closed() const { return is_closed_.load(std::memory_order_acquire); }
  std::optional<Error> reason() const;
  /// Whether all have left within `limit`.
  bool wait_empty(Duration limit);

 private:
  void leave();

  mutable std::mutex mutex_;
  std::condition_variable left_;
  std::optional<Error> reason_;
  std::atomic<bool> is_closed_{false};
  int inside_count_ = 0;
};

}  // namespace muster::communicator
