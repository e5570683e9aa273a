#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

#include "muster/config.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// Runs `work` once, on a thread that the application chooses. It queues `work` and returns.
using Executor = std::function<void(std::function<void()> work)>;

/// The largest value of `ServerOptions::busy_poll` and `StoreOptions::busy_poll`.
inline constexpr Duration busy_poll_max{std::chrono::milliseconds(100)};

/// What stores and servers can share: an I/O thread, and a handler thread, which is started when
/// first needed. With `create` the I/O thread belongs to this object; the other two functions make
/// a thread of the application the I/O thread, and with `create_for_host_loop` there is no handler
/// thread either.
///
/// An I/O thread of this object's own runs the application's loggers and executors, and handlers
/// only with `HandlerPlace::io_thread`. The threads of this object block all signals and are named
/// `name`. They end with the last reference to it.
class MUSTER_API IoThread {
 public:
  /// Starts the I/O thread.
  ///
  /// name     of the threads; the first 15 bytes count
  /// returns  null if the system has no thread or descriptor left
  static std::shared_ptr<IoThread> create(std::string_view name = "muster");

  /// As `create`, but starts no I/O thread: the calling thread does the input and output while it
  /// is inside `run_until`. For a program that only serves, such as `musterd`: system calls cost
  /// less in a process with one thread.
  ///
  /// On that thread blocking calls return `would_deadlock`, as in inline handlers; but
  /// `Server::stop` does input and output while it waits. While the thread is outside of
  /// `run_until`, calls of other threads wait until their deadlines, and the end of a server waits
  /// for 5 s.
  ///
  /// name     of the handler thread
  /// returns  null if the system has no descriptor left
  static std::shared_ptr<IoThread> create_for_caller(std::string_view name = "muster");

  /// As `create`, but with no thread at all: for a program with an event loop of its own. For Asio,
  /// muster/asio.h does all this. The host waits, in its poll or epoll set, until `descriptor` is
  /// readable, and then calls `serve_ready`, which never blocks. Between these calls nothing
  /// happens. A host that does not call it for three `Limits::heartbeat` is silent to the others,
  /// and is lost after `Limits::session_timeout`.
  ///
  /// Handlers run inside `serve_ready` (or `run_until`, or the end of a server), or on
  /// `StoreOptions::executor`. Each name look-up has a thread while it lasts; `busy_poll` has no
  /// effect. The I/O thread is the thread that served last, at first the one that called this:
  /// blocking calls return `would_deadlock` there at once, and stores and servers end there without
  /// waiting for another thread. Any thread may serve, one at a time.
  ///
  /// returns  null if the system has no descriptor left
  static std::shared_ptr<IoThread> create_for_host_loop();

  /// Readable while `serve_ready` has something to do: for a connection, a timer, or a call of
  /// another thread. Only this object closes it.
  ///
  /// returns  -1 if this was not made by `create_for_host_loop`, and in a forked child, whose copy
  ///          of the descriptor shows what the parent has to do
  int descriptor() const noexcept;

  /// Serves each ready connection, timer and call once, and returns. While something is left,
  /// `descriptor` stays readable. The caller keeps a reference to this object.
  ///
  /// returns  whether something happened; false also from inside `serve_ready`, after `finish`, in
  ///          a forked child, and if this was not made by `create_for_host_loop`
  bool serve_ready();

  /// The host will not serve again: serves what is ready, such as the ends of stores, groups and
  /// servers, and drops the rest; from inside `serve_ready`, when that returns. A host calls it
  /// before it drops its last reference. A store that still exists may be destroyed afterwards, on
  /// any thread; its handlers then run in its destructor. Nothing, if this was not made by
  /// `create_for_host_loop`.
  void finish();

  /// Does input and output on the thread that called `create_for_caller`, or that serves a host's
  /// loop, until `is_over` returns true. Calls `is_over` first, and after each turn of the loop in
  /// which something happened; an exception of `is_over` leaves `run_until`. The caller keeps a
  /// reference to this object.
  ///
  /// returns  true; false at once if called on another thread, or from inside `run_until` or
  ///          `serve_ready`
  bool run_until(const std::function<bool()>& is_over);

  /// Makes `run_until` call `is_over` again.
  ///
  /// threads  any, and signal handlers: async-signal-safe
  void wake() noexcept;

  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  class Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit IoThread(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

MUSTER_END_NAMESPACE
