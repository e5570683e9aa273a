#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/io_thread.h"

namespace example {

/// Work for the main loop, from any thread. Muster's I/O thread has a share in it, since it may
/// have a handler to pass on when the loop is over; what is queued then never runs.
class Inbox {
 public:
  Inbox() = default;
  ~Inbox() { ::close(wake_); }
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  void post(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
    }
    ::eventfd_write(wake_, 1);
  }

  void run() {
    eventfd_t count = 0;
    ::eventfd_read(wake_, &count);
    std::vector<std::function<void()>> queue;
    {
      const std::lock_guard lock(mutex_);
      queue.swap(queue_);
    }
    for (std::function<void()>& work : queue) work();
  }

  /// Can be read when there is work.
  int wake() const { return wake_; }

 private:
  int wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::mutex mutex_;
  std::vector<std::function<void()>> queue_;
};

/// The loop that an inference server has anyway: its sources of work, on one thread.
class MainLoop {
 public:
  /// What the loop tells; set before `run`.
  struct Handlers {
    std::function<bool()> wants_input;                ///< whether a request can be taken
    std::function<void(const std::string&)> on_line;  ///< a request
    std::function<void()> on_end;                     ///< once: no more requests come
    std::function<void()> on_abort;                   ///< a signal after that
    std::function<void()> on_child;                   ///< a child process has ended
  };

  /// Signals first: threads that are started later leave them to this loop.
  MainLoop() {
    sigset_t taken;
    ::sigemptyset(&taken);
    for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) ::sigaddset(&taken, signal);
    ::sigprocmask(SIG_BLOCK, &taken, nullptr);
    signals_ = ::signalfd(-1, &taken, SFD_CLOEXEC);
  }
  ~MainLoop() { ::close(signals_); }
  MainLoop(const MainLoop&) = delete;
  MainLoop& operator=(const MainLoop&) = delete;

  /// Runs handlers here.
  muster::Executor executor() {
    return [inbox = inbox_](std::function<void()> work) { inbox->post(std::move(work)); };
  }

  void run(const Handlers& handlers) {
    while (!ended_) {
      const bool reads = has_input_ && handlers.wants_input();
      pollfd sources[] = {{inbox_->wake(), POLLIN, 0},
                          {signals_, POLLIN, 0},
                          {reads ? STDIN_FILENO : -1, POLLIN, 0}};  // poll leaves out what is -1
      if (::poll(sources, 3, left_ms()) < 0) continue;
      if (sources[0].revents != 0) inbox_->run();
      if (sources[1].revents != 0) take_signal(handlers);
      if (sources[2].revents != 0 && has_input_) take_input(handlers);
      if (timer_ && Clock::now() >= timer_->at) std::exchange(timer_, std::nullopt)->work();
    }
  }
  void end() { ended_ = true; }

  /// Runs `work` after some time, unless the loop ends before; there is one timer.
  void after(std::chrono::milliseconds time, std::function<void()> work) {
    timer_ = Timer{Clock::now() + time, std::move(work)};
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Timer {
    Clock::time_point at;
    std::function<void()> work;
  };

  int left_ms() const {
    if (!timer_) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(timer_->at - Clock::now());
    return left.count() < 0 ? 0 : static_cast<int>(left.count());
  }

  void take_signal(const Handlers& handlers) {
    signalfd_siginfo signal;
    if (::read(signals_, &signal, sizeof signal) != sizeof signal) return;
    if (signal.ssi_signo == SIGCHLD) return handlers.on_child();
    is_ending_ ? handlers.on_abort() : end_input(handlers);
  }

  void take_input(const Handlers& handlers) {
    char bytes[4096];
    const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (count > 0) input_.append(bytes, static_cast<std::size_t>(count));
    for (std::size_t end; (end = input_.find('\n')) != std::string::npos;) {
      handlers.on_line(input_.substr(0, end));
      input_.erase(0, end + 1);
    }
    if (count <= 0) end_input(handlers);
  }

  void end_input(const Handlers& handlers) {
    has_input_ = false;
    if (!std::exchange(is_ending_, true)) handlers.on_end();
  }

  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  int signals_ = -1;
  std::string input_;
  std::optional<Timer> timer_;
  bool has_input_ = true;
  bool is_ending_ = false;
  bool ended_ = false;
};

}  // namespace example
