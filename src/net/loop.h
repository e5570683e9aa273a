#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/histogram.h"
#include "base/time.h"
#include "net/doorbell.h"
#include "net/socket_set.h"
#include "net/task.h"
#include "net/timer.h"
#include "net/unique_fd.h"
#include "net/watcher.h"

namespace muster::net {

/// Above 100 ms a turn is long.
inline constexpr auto turn_bounds = std::to_array<Duration>({
    std::chrono::microseconds(50),
    std::chrono::microseconds(100),
    std::chrono::microseconds(250),
    std::chrono::milliseconds(1),
    std::chrono::microseconds(2500),
    std::chrono::milliseconds(5),
    std::chrono::milliseconds(10),
    std::chrono::milliseconds(25),
    std::chrono::milliseconds(100),
    std::chrono::milliseconds(500),
    std::chrono::seconds(2),
});
/// How long turns of a loop have taken, without what it waited.
using TurnTimes = base::Histogram<turn_bounds>;

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

/// Runs what ends something after a failure; it needs a little memory, too, so when it throws it is
/// called again, for a second at most.
template <class End>
void insist(const End& end) noexcept {
  for (int attempt = 0; attempt < 100; ++attempt) {
    try {
      return end();
    } catch (...) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
}

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

  /// From now on the loop looks for events for `wish` after the last one, before it sleeps; of
  /// several wishes the longest counts.
  void begin_busy_poll(Duration wish);
  void end_busy_poll(Duration wish) noexcept;

  /// `end` runs on the I/O thread when something was thrown there, such as for want of memory: what
  /// was at work may be half done, so whoever has state on this loop ends it and begins anew.
  /// `end` itself must not call `forget`, and is called again, for a second at most, when it
  /// throws.
  ///
  /// returns  what `forget` takes
  std::uint64_t on_failure(std::function<void(std::string_view why)> end);
  void forget(std::uint64_t number) { failure_listeners_.erase(number); }
  void fail(std::string_view why) noexcept;

  /// Where reads go; what is in it is used up before the next one.
  std::array<char, 64 * 1024> read_buffer;
  /// What a record of TLS holds; likewise.
  std::array<char, 16 * 1024> record_buffer;

  /// From 1; that of the one in hand, or of the last one.
  std::uint64_t turn_number() const { return turn_number_; }
  /// From the end of a wait to the next one, since the start; those that were longer than 100 ms.
  Duration longest_turn() const { return longest_turn_; }
  std::uint64_t long_turns_count() const { return long_turns_count_; }
  const TurnTimes& turn_times() const { return turn_times_; }

  /// Memory for bytes that are to be sent, so that a connection with nothing to send has none.
  std::string take_spare() noexcept;
  void give_spare(std::string spare) noexcept;

 private:
  friend class Timer;
  friend class Watcher;

  Timers& timers() { return timers_; }
  base::Instant earliest_timer() const { return earliest_timer_; }
  void admit(Watcher& watcher);
  int change(Watcher& watcher, std::uint32_t events) noexcept;
  void dismiss(Watcher& watcher) noexcept;

  void add_own(int fd, std::uint32_t events, void* mark);
  int timeout_ms(Duration wait_max);
  bool has_work() const;
  void serve(int timeout);
  void end_turn(base::Instant began);
  void prepare_clock();
  void await_timers();
  void set_clock();
  bool shall_poll();
  void run_ready();
  void run_timers();
  void run_posted();
  void take_posted();

  UniqueFd epoll_;
  UniqueFd wake_;   ///< eventfd
  UniqueFd clock_;  ///< timerfd
  SocketSet sockets_;
  Doorbell bell_;
  std::shared_ptr<Mailbox> mailbox_;

  std::atomic<Task*> posted_{nullptr};  ///< the latest first
  std::atomic<bool> is_asleep_{false};
  std::atomic<bool> is_stopped_{false};

  TaskQueue tasks_;  ///< that this turn or the next one runs
  Timers timers_;
  std::multiset<Duration> busy_polls_;
  base::Instant polls_until_{};
  bool has_run_posted_ = false;
  bool is_polling_ = false;
  base::Instant earliest_timer_{};  ///< after those that ran last: what they set waits for a turn
  base::Instant clock_set_for_ = base::far_future;
  bool is_clock_due_ = false;
  Watcher* first_watcher_ = nullptr;
  /// An event may cost 50 us, as when a connection ends: a turn stays short whatever comes at once.
  static constexpr std::size_t events_per_turn = 64;
  std::array<epoll_event, events_per_turn>
      events_;  ///< from `next_event_` on; what is before has been told
  std::size_t next_event_ = 0;
  std::size_t event_count_ = 0;
  std::uint64_t turn_number_ = 0;
  Duration longest_turn_{};
  std::uint64_t long_turns_count_ = 0;
  TurnTimes turn_times_;
  std::map<std::uint64_t, std::function<void(std::string_view why)>> failure_listeners_;
  std::uint64_t last_number_ = 0;
  std::vector<std::string> spares_;
};

}  // namespace muster::net
