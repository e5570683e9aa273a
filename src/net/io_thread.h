#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/forked.h"
#include "muster/io_thread.h"
#include "net/loop.h"

MUSTER_BEGIN_NAMESPACE

/// What is behind an IoThread: a loop with one thread, its own or that of the caller, and a queue
/// of handlers with another that starts with the first handler.
///
/// The last reference may be dropped anywhere, on either of the two threads too: a thread that
/// cannot be waited for ends by itself. In a forked child the threads do not exist; there the
/// destructor closes the sockets and leaves everything else alone.
class IoThread::Impl {
 public:
  enum class Runs : std::uint8_t { on_own_thread, on_callers };

  /// Throws std::system_error when the system has no thread or descriptor left.
  Impl(std::string name, Runs runs);
  /// Null instead.
  static std::shared_ptr<IoThread> create(std::string_view name, Runs runs);
  ~Impl();

  /// Who posts there holds a reference to the IoThread until the post has returned: the work
  /// may drop the last other one before that.
  net::Loop& loop();

  /// Runs `task` on the handler thread, in order; all of them before the thread ends. Throws
  /// std::system_error when the system has no thread left, and has not taken it then.
  void post_handler(net::Task& task);

  /// Whether the caller runs on the I/O thread (a blocking call there would wait for itself).
  bool on_io_thread() const;
  bool on_handler_thread() const;

  /// Whether the caller may serve now: it is the I/O thread, and not at it already.
  bool may_run() const { return runs_ == Runs::on_callers && on_io_thread() && !is_running_; }
  /// Serves until `is_over`, for `at_most`; only if `may_run`.
  void run_until(const std::function<bool()>& is_over, Duration at_most);

  /// Whether this is a forked child of the process that owns the threads.
  bool forked() const;
  /// In a forked child: closes its copies of all sockets on this thread. Whoever has objects on
  /// the thread calls this there and then leaks them: their destructors would disturb the parent.
  void close_inherited_sockets();

 private:
  struct Handlers;

  std::string name_;
  const Runs runs_;
  const std::thread::id caller_ = std::this_thread::get_id();
  bool is_running_ = false;  ///< on the caller's thread
  base::Owner owner_;
  std::shared_ptr<net::Loop> loop_;  // lives as long as its thread runs
  std::shared_ptr<Handlers> handlers_;
  std::thread io_thread_;
};

MUSTER_END_NAMESPACE
