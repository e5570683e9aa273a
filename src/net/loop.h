#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "net/busy_polling.h"
#include "net/doorbell.h"
#include "net/failure_listeners.h"
#include "net/ready_events.h"
#include "net/socket_set.h"
#include "net/task.h"
#include "net/timer_queue.h"
#include "net/turn_stats.h"
#include "net/unique_fd.h"
#include "net/watcher.h"

namespace muster::net {

/// Hands work to a loop from threads that may outlive it.
class Mailbox {
 public:
  explicit Mailbox(Loop& loop) : loop_(&loop) {}

  /// Runs `work` on the I/O thread; drops it when the loop is gone.
  void post(std::function<void()> work);
  void shut();

 private:
  std::mutex mutex_;
  Loop* loop_;
};

/// What one I/O thread does: waits for its descriptors, its timers and for work from other threads,
/// and carries out what is due, in turns in which everybody is served once.
///
/// What is thrown passes through `run`, which may be called again: nothing else is lost by it.
class Loop {
 public:
  /// Throws std::system_error when the system has no descriptor left.
  Loop();
  /// Lets go of all work and closes all descriptors that are left.
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Any thread. Whoever calls sees to it that the loop stands until the call has returned: the
  // work may drop the last other reference to it before that.

  /// Runs `work` in one of the next turns, in the order of the posts.
  void post(std::function<void()> work);
  void post(Task& task) noexcept;
  /// `run` returns, now or when it is called.
  void stop() noexcept;
  /// The turn that waits ends. Also from handlers of signals.
  void wake() noexcept;
  Doorbell& bell() { return bell_; }
  SocketSet& sockets() { return sockets_; }
  const std::shared_ptr<Mailbox>& mailbox() const { return mailbox_; }

  // On the I/O thread.

  void run();
  /// One turn, which waits until something happens or `wait_max` has passed.
  void turn(Duration wait_max);

  // For a thread that waits for `descriptor` instead, in an epoll set or a poll of its own.

  /// Readable while there is something to do, if the last to work here has called `rest`.
  int descriptor() const { return epoll_.get(); }
  /// One turn, which does not wait.
  ///
  /// returns  whether something has happened
  bool turn_now();
  /// After any work here, also outside of turns: sets the clock, and asks to be woken.
  void rest() noexcept;
  /// Lets go of all work that was posted.
  void drop_tasks() noexcept;

  BusyPolling& busy_polling() { return busy_polling_; }

  /// `end` runs on the I/O thread when something was thrown there, such as for want of memory: what
  /// was at work may be half done, so whoever has state on this loop ends it and begins anew.
  /// `end` itself must not call `forget`, and is called again, for a second at most, when it
  /// throws.
  ///
  /// returns  what `forget` takes
  std::uint64_t on_failure(FailureListeners::End end) {
    return failure_listeners_.add(std::move(end));
  }
  void forget(std::uint64_t number) { failure_listeners_.remove(number); }
  void fail(std::string_view why) const noexcept { failure_listeners_.call(why); }

  /// Where reads go; what is in it is used up before the next one.
  std::array<char, 64 * 1024> read_buffer;
  /// What a record of TLS holds; likewise.
  std::array<char, 16 * 1024> record_buffer;

  /// From 1; that of the one in hand, or of the last one.
  std::uint64_t turn_number() const { return turn_number_; }
  const TurnStats& turn_stats() const { return turn_stats_; }

  /// Memory for bytes that are to be sent, so that a connection with nothing to send has none.
  std::string take_spare() noexcept;
  void give_spare(std::string spare) noexcept;

 private:
  friend class Timer;
  friend class Watcher;

  TimerQueue& timers() { return timers_; }
  void admit(Watcher& watcher);
  int change(Watcher& watcher, std::uint32_t events) noexcept;
  void dismiss(Watcher& watcher) noexcept;

  void add_own(int fd, std::uint32_t events, void* mark);
  int timeout_ms(Duration wait_max);
  bool has_work() const;
  void serve(int timeout);
  void run_ready();
  void run_posted();
  void take_posted();

  UniqueFd epoll_;
  UniqueFd wake_;  ///< eventfd
  SocketSet sockets_;
  Doorbell bell_;
  std::shared_ptr<Mailbox> mailbox_;

  std::atomic<Task*> posted_{nullptr};  ///< the latest first
  std::atomic<bool> is_asleep_{false};
  std::atomic<bool> is_stopped_{false};

  TaskQueue tasks_;  ///< that this turn or the next one runs
  bool has_run_posted_ = false;
  TimerQueue timers_;
  BusyPolling busy_polling_;
  Watcher* first_watcher_ = nullptr;
  ReadyEvents ready_;
  std::uint64_t turn_number_ = 0;
  TurnStats turn_stats_;
  FailureListeners failure_listeners_;
  std::vector<std::string> spares_;
};

}  // namespace muster::net
