#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "muster/io_thread.h"
#include "muster/store.h"
#include "net/task.h"

namespace muster::client {

/// One run of a function of the application. It runs once or is destroyed, and is all the memory
/// that its run needs, unless the application's executor needs more.
class Job : private net::Task {
 public:
  /// what  for the log, such as "get"; lives as long as the program
  explicit Job(std::string_view what) : what_(what) {}
  virtual ~Job() = default;

 protected:
  virtual void work() = 0;

 private:
  friend class Handlers;

  void work_guarded();
  void work_inline();
  void run() final;
  void drop() noexcept final { delete this; }

  const std::string_view what_;
  std::shared_ptr<const Logger> logger_;
  bool is_inline_ = false;
};

/// Runs the application's functions (handlers, on_loss, on_leave, on_session_end) where the options
/// say. One that is slow is logged, one that throws is logged and goes no further.
class Handlers {
 public:
  Handlers(const StoreOptions& options, IoThread& io_thread);

  /// From any thread; inline handlers run at once only on the I/O thread.
  void dispatch(std::unique_ptr<Job> job) const;
  void dispatch(std::string_view what, std::function<void()> work) const;
  /// As `dispatch`, but inline handlers run in a later turn. At once only where memory is out or
  /// no turn follows: after `IoThread::finish`.
  void dispatch_later(std::unique_ptr<Job> job) const;
  void dispatch_later(std::string_view what, std::function<void()> work) const;

  void log(LogLevel level, std::string_view line) const;

  /// Whether the caller is inside a handler that runs on some I/O thread.
  static bool is_inside_inline_handler();

  static constexpr Duration slow_after{std::chrono::milliseconds(100)};

 private:
  enum class When { now, later };

  void dispatch(std::unique_ptr<Job> job, When when) const;
  void post(std::unique_ptr<Job>& job, When when) const;

  IoThread& io_thread_;
  HandlerPlace place_;
  Executor executor_;
  std::shared_ptr<const Logger> logger_;  // handlers outlive the store
};

}  // namespace muster::client
