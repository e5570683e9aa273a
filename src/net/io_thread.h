#pragma once

#include <atomic>
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
/// of handlers with another that starts with the first handler. Of a host's loop: none; handlers
/// are work of the loop then.
///
/// The last reference may be dropped anywhere, on either of the two threads too: a thread that
/// cannot be waited for ends by itself. In a forked child the threads do not exist; there the
/// destructor closes the sockets and leaves everything else alone.
class IoThread::Impl {
 public:
  enum class Runs : std::uint8_t { on_own_thread, on_callers, in_hosts_loop };

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
  /// Runs `task` on the I/O thread: at once if handlers may run here and now.
  void run_inline_handler(net::Task& task);
  /// Runs `task` on the I/O thread in a later turn; at once where `finish` has said that there is
  /// none.
  void post_inline_handler(net::Task& task);

  /// Whether what belongs to the I/O thread is the caller's now. Of a host's loop: only in a turn.
  bool on_io_thread() const;
  /// Whether a blocking call of the caller would wait for the caller itself.
  bool would_deadlock() const;
  bool on_handler_thread() const;

  /// Whether the caller may serve now: it is the I/O thread, and not at it already. After `finish`
  /// every thread may, since no other one will.
  bool may_run() const;
  /// Serves until `is_over`, for `at_most`; only if `may_run`.
  void run_until(const std::function<bool()>& is_over, Duration at_most);
  /// Runs `work` as the I/O thread does, but no handlers, which wait for the next turn.
  ///
  /// returns  whether it has run: the caller may serve, and no other thread has begun to meanwhile
  bool run_here(const std::function<void()>& work);

  // Of a host's loop.

  int descriptor() const;
  bool serve_ready();
  void finish();

  /// Whether this is a forked child of the process that owns the threads.
  bool forked() const;
  /// In a forked child: closes its copies of all sockets on this thread. Whoever has objects on
  /// the thread calls this there and then leaks them: their destructors would disturb the parent.
  void close_inherited_sockets();

 private:
  struct Handlers;
  class Serving;
  enum class Handling : std::uint8_t { at_once, in_next_turn };

  bool turn_now();
  void serve_last_turns();
  bool is_serving() const { return serving_.load() == std::this_thread::get_id(); }

  std::string name_;
  const Runs runs_;
  /// The I/O thread, where that is not its own: of a host's loop the last one that served.
  std::atomic<std::thread::id> caller_{std::this_thread::get_id()};
  std::atomic<std::thread::id> serving_{};  ///< that thread, while it serves
  Handling handling_ = Handling::at_once;   ///< of inline handlers; the thread's that serves
  std::atomic<bool> is_finished_{false};
  base::Owner owner_;
  std::shared_ptr<net::Loop> loop_;  // lives as long as its thread runs
  std::shared_ptr<Handlers> handlers_;
  std::thread io_thread_;
};

MUSTER_END_NAMESPACE
