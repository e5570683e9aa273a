#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "communicator/gate.h"
#include "muster/result.h"

namespace muster::nccl {

/// Which thread is in NCCL for a device, of all communicators that share this: NCCL lets in one at
/// a time, and wants the operations of a device in one order on all ranks.
///
/// threads  any
class Turns {
 public:
  using Clock = std::chrono::steady_clock;

  /// The thread's, until it goes.
  class Turn {
   public:
    Turn(Turns& turns, int device) : turns_(&turns), device_(device) {}
    ~Turn();
    Turn(Turn&& other) noexcept;
    Turn& operator=(Turn&&) = delete;

   private:
    Turns* turns_;
    int device_;
  };

  /// Who takes it: what must keep the one order is issued by one thread, or NCCL keeps the order.
  /// An onlooker stands back for those that wait.
  enum class Taker { issuer, anyone, onlooker };

  /// Waits until no other thread has it. A thread that has it gets it again.
  ///
  /// errors  would_deadlock (another thread, which lives still, has issued to the device; not with
  ///         an implicit order),
  ///         timed_out (another has it still), why the gate is closed
  Result<Turn> take(int device, Taker taker, Clock::time_point until,
                    const communicator::Gate& gate);

 private:
  struct Line {
    std::weak_ptr<const int> issuer;  ///< its mark, which goes with it
    std::thread::id inside;
    int depth = 0;
    int waiting_count = 0;
  };

  void give_back(int device);

  std::mutex mutex_;
  std::condition_variable given_back_;
  std::map<int, Line> lines_;  ///< by the device's ordinal
};

}  // namespace muster::nccl
