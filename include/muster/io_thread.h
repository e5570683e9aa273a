#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

#include "muster/config.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// Runs a closure once, on some thread of the application's choice. It queues and returns.
using Executor = std::function<void(std::function<void()> work)>;

/// How long `ServerOptions::busy_poll` and `StoreOptions::busy_poll` may be.
inline constexpr Duration busy_poll_max{std::chrono::milliseconds(100)};

/// A pair of threads that stores and servers can share: one for input and output, which never
/// runs the application's code unless asked to, and one for handlers, started when first needed.
///
/// Both block all signals and carry `name`. They end when the last store or server lets go.
class MUSTER_API IoThread {
 public:
  /// Starts the thread for input and output.
  ///
  /// name     of the threads, at most 15 bytes are kept
  /// returns  null when the system has no thread or descriptor left
  static std::shared_ptr<IoThread> create(std::string_view name = "muster");

  /// The same without a thread for input and output: that is the caller's, which serves while it
  /// is in `run_until`, and nothing happens meanwhile. For a program that only serves, such as
  /// `musterd`: the kernel's calls take less in a process of one thread.
  ///
  /// Blocking calls are refused on it, as in handlers that run inline; but `Server::stop` serves
  /// while it waits. While nobody serves, the calls of other threads wait until their deadlines,
  /// and for 5 s the end of a server there.
  ///
  /// name     of the thread for handlers
  /// returns  null when the system has no descriptor left
  static std::shared_ptr<IoThread> create_for_caller(std::string_view name = "muster");

  /// The same for a program with an event loop of its own, such as Asio's (muster/asio.h serves one
  /// from an `io_context`): no thread at all. The host waits until `descriptor` is readable, in its
  /// poll or epoll set, and then calls `serve_ready`, which never blocks. Nothing happens
  /// meanwhile, so a host that does not come back for `Limits::heartbeat` is silent to the others,
  /// and after the session timeout lost.
  ///
  /// Handlers run within `serve_ready` (and `run_until`, and the end of a server), or on
  /// `StoreOptions::executor`. Name look-ups have a thread while they last; `busy_poll` has no
  /// meaning here. The thread that serves is the one that did so last, first the one that called
  /// this: blocking calls give `would_deadlock` there at once, stores and servers end without
  /// waiting for another thread. It may be another one each time, one after the other.
  ///
  /// returns  null when the system has no descriptor left
  static std::shared_ptr<IoThread> create_for_host_loop();

  /// Readable, as long as that is so, when `serve_ready` has something to do: a connection, a
  /// timer, or a call of any thread. To be closed by nobody else; -1: not of a host's loop.
  int descriptor() const noexcept;

  /// Serves what is ready, once each, and returns. What is left keeps `descriptor` readable.
  /// Somebody holds a reference to this object meanwhile.
  ///
  /// returns  whether something has happened; false also within such a call, after `finish`, in a
  ///          forked child, and when this is not of a host's loop
  bool serve_ready();

  /// Nobody will serve any more: serves what is ready, which is what the ends of stores, groups and
  /// servers have left, and lets go of the rest. A host calls it before it lets go of this object,
  /// from without `serve_ready`. A store that is still there may be destroyed afterwards; its
  /// handlers run in its destructor then.
  void finish();

  /// Serves on the thread that called `create_for_caller` (or that serves a host's loop), until
  /// `is_over` says true: it is asked before and after each turn in which something happened, and
  /// what it throws passes through. Somebody holds a reference to this object meanwhile.
  ///
  /// returns  false, at once: this is another thread, or within such a turn or `serve_ready`
  bool run_until(const std::function<bool()>& is_over);

  /// `run_until` asks anew. Any thread, and handlers of signals.
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
