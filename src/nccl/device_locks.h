#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "communicator/gate.h"
#include "muster/result.h"

namespace muster::nccl_internal {

/// A lock for each device. NCCL may be called by one thread per device at a time, and needs the
/// operations of a device in the same order on all ranks.
///
/// threads  any
class DeviceLocks {
 public:
  using Clock = std::chrono::steady_clock;

  /// Holds the lock of a device for one thread.
  class Lock {
   public:
    Lock(DeviceLocks& locks, int device) : locks_(&locks), device_(device) {}
    ~Lock();
    Lock(Lock&& other) noexcept;
    Lock& operator=(Lock&&) = delete;

   private:
    DeviceLocks* locks_;
    int device_;
  };

  /// Why a thread needs the lock. An issuer issues operations: only one thread does, unless NCCL
  /// keeps the order. An onlooker does not get the lock while other threads wait for it.
  enum class Role { issuer, anyone, onlooker };

  /// Waits until no other thread holds the lock. The thread that holds it gets it again.
  ///
  /// gate    of the communicator that is called; the wait ends when it is closed
  /// errors  would_deadlock (another thread that still runs has issued to the device; not with an
  ///         implicit order), timed_out (another thread holds the lock), why the gate is closed
  Result<Lock> acquire(int device, Role role, Clock::time_point until,
                       const communicator::Gate& gate);

  /// Another thread may be the issuer from now on.
  ///
  /// errors  would_deadlock (another thread is), invalid_argument (the thread holds the lock)
  Result<void> release_issuer(int device);

 private:
  struct Queue {
    std::weak_ptr<const int> issuer;  ///< its mark, which exists as long as the thread
    std::thread::id holder;
    int depth = 0;
    int waiting_count = 0;
  };

  void release(int device);

  std::mutex mutex_;
  std::condition_variable released_;
  std::map<int, Queue> queues_;  ///< by the device's ordinal
};

}  // namespace muster::nccl_internal
