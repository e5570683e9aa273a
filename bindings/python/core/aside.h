#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "muster/interruptible.h"

// A call on a thread of its own, while the thread that Python calls on does something else: it runs
// the body of a scope, or it looks for signals in place of a call that does not.

namespace muster::python {

/// Runs one call, once, which needs no GIL. Nothing here needs it.
class Aside {
 public:
  Aside() = default;
  /// Cancels the call, and waits for it.
  ~Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

  /// errors  std::system_error: the system has no thread left
  void start(std::function<void()> call);

  /// Changes what both threads look at, and wakes the other one.
  template <class Change>
  void change(const Change& change) {
    const std::lock_guard lock(wake_->mutex);
    change();
    wake_->changed.notify_all();
  }

  /// Of the call: waits until `is_there`, or until it is cancelled.
  ///
  /// returns  whether it is there
  template <class IsThere>
  bool await_in_call(const IsThere& is_there) {
    std::unique_lock lock(wake_->mutex);
    while (!is_there() && !is_cancelled()) wake_->changed.wait_for(lock, look_again);
    return is_there();
  }

  /// Of the other thread: waits until `is_there`, or until the call has ended. When the thread is
  /// interrupted (see Interruptible) the call is cancelled, once, also by `cancel`, and it waits
  /// on.
  template <class IsThere, class Cancel>
  void wait(const IsThere& is_there, const Cancel& cancel) {
    const Interruptible* const interruptible = Interruptible::current();
    std::unique_lock lock(wake_->mutex);
    while (!is_over_ && !is_there()) {
      wake_->changed.wait_for(lock,
                              interruptible == nullptr ? look_again : interruptible->period());
      if (is_over_ || is_there() || is_cancelled_ || interruptible == nullptr) continue;
      lock.unlock();
      const bool is_asked = interruptible->is_interrupted();
      if (is_asked && !is_cancelled_.exchange(true)) cancel();
      lock.lock();
    }
  }

  void cancel() { is_cancelled_ = true; }
  bool is_over() {
    const std::lock_guard lock(wake_->mutex);
    return is_over_;
  }

 private:
  /// A forked child leaves it as it is: the call of its parent waits there.
  struct Wake {
    std::mutex mutex;
    std::condition_variable changed;
  };

  static constexpr std::chrono::milliseconds look_again{50};

  static bool look(void* self) noexcept;
  bool is_cancelled() const;

  std::unique_ptr<Wake> wake_ = std::make_unique<Wake>();
  bool is_over_ = false;
  std::atomic<bool> is_cancelled_ = false;
  std::thread thread_;
  pid_t process_ = 0;
};

/// Makes a call on a thread of its own, and waits for it as a call that can be interrupted.
///
/// cancel  called once, when this thread is interrupted
template <class Call, class Cancel>
auto made_aside(const Call& call, const Cancel& cancel) {
  std::optional<decltype(call())> outcome;
  Aside aside;
  aside.start([&] { outcome.emplace(call()); });
  aside.wait([] { return false; }, cancel);
  return *std::move(outcome);
}

}  // namespace muster::python
