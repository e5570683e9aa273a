#pragma once

// For programs on Asio: each call in its callback form as an asynchronous operation that takes a
// completion token, and Muster served by the program's io_context. Opt-in and header only, for the
// standalone Asio that the program has, 1.22 or later:
//
//     auto got = co_await muster::async_get(store, "key", 5s, asio::use_awaitable);
//     auto passed = co_await muster::async_barrier(group, 5s, asio::use_awaitable);
//
// async_NAME(object, arguments, token) calls NAME_async of muster/store.h or
// muster/process_group.h. Those of objects correspond to the blocking NAME. Promises, errors and
// costs are documented there. In addition, for each of them:
//
// completes  with `void(Result<T>)`, errors included, never before the function has returned
// executor   the handler is posted to its associated executor, which has work until then. A handler
//            without one runs where and when that of the callback form does
// allocator  the post uses the handler's associated allocator; on Muster's I/O thread, for a store
//            that has one
// exceptions what a codec or a function of the program throws while it makes the result ends the
//            operation with codec_failure; `detail` is its text
// cancelling any cancellation type that the handler's slot is told ends this one call, as
//            `Call::cancel` does
// lifetime   the operation keeps its arguments. The object must live until the operation begins:
//            with `use_awaitable` and `deferred` that is when it is awaited or launched. When the
//            executor's context is destroyed, handlers that have not run are destroyed with it, as
//            with Asio's own operations. A store with an I/O thread of its own must go before that
//
// For a store with an I/O thread of its own use HandlerPlace::io_thread: all that runs there is the
// post, and a change of threads is spared.

// Asio 1.22 does not know that clang has coroutines. Where a header of Asio comes before this one,
// the program defines both.
#if defined(__clang__) && __cplusplus >= 202002L && !defined(ASIO_HAS_CO_AWAIT) && \
    !defined(ASIO_DETAIL_CONFIG_HPP)
#define ASIO_HAS_CO_AWAIT 1
#define ASIO_HAS_STD_COROUTINE 1
#endif

#include <fcntl.h>
#include <unistd.h>

#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include <asio/any_io_executor.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/system_error.hpp>

#include "muster/communicator.h"
#include "muster/config.h"
#include "muster/detail/asio_call.h"
#include "muster/detail/asio_group.h"
#include "muster/detail/asio_store.h"
#include "muster/io_thread.h"
#include "muster/result.h"

MUSTER_BEGIN_NAMESPACE

/// Serves stores and servers from an io_context, without a further thread: those that have
/// `io_thread()` in their options. It is an `IoThread::create_for_host_loop`, and what is said
/// there holds: blocking calls give `would_deadlock` on the thread that runs the context, and a
/// handler of the program that takes long keeps Muster waiting (docs/embedding.md has the limits).
///
/// Destroy it before its context, and after the stores, groups and servers: it still serves their
/// ends. Around a fork call `notify_fork` of the context, as Asio asks for; in the child nothing is
/// served.
///
/// threads  those of the executor, one at a time
class AsioLoop {
 public:
  /// executor  of an io_context; if several threads run the context, a strand of it
  /// errors    resource_exhausted (the system has no descriptor left)
  static Result<AsioLoop> create(const asio::any_io_executor& executor) {
    auto io_thread = IoThread::create_for_host_loop();
    if (!io_thread) return no_descriptor();
    AsioLoop loop(std::make_shared<State>(std::move(io_thread), executor));
    const int copy = ::fcntl(loop.io_thread()->descriptor(), F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return no_descriptor();
    try {
      loop.state_->begin(copy);
    } catch (const asio::system_error&) {  // it has not taken the copy
      ::close(copy);
      return no_descriptor();
    }
    return loop;
  }

  ~AsioLoop() { stop(); }
  AsioLoop(AsioLoop&&) noexcept = default;
  AsioLoop& operator=(AsioLoop&& other) noexcept {
    if (this != &other) stop();
    state_ = std::move(other.state_);
    return *this;
  }

  /// For the options of stores and servers.
  const std::shared_ptr<IoThread>& io_thread() const { return state_->io_thread; }

  /// Serves what is ready for the last time. Until this is called, the context has work, and its
  /// `run` does not return.
  void stop() {
    if (state_) state_->stop();
  }

 private:
  struct State : std::enable_shared_from_this<State> {
    State(std::shared_ptr<IoThread> given, const asio::any_io_executor& executor)
        : io_thread(std::move(given)), descriptor(executor) {}

    void begin(int copy) {
      descriptor.assign(copy);
      wait();
    }

    void wait() {
      descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                            [self = this->shared_from_this()](const asio::error_code& error) {
                              if (error || !self->descriptor.is_open()) return;
                              self->io_thread->serve_ready();
                              const bool is_forked = self->io_thread->descriptor() < 0;
                              if (self->descriptor.is_open() && !is_forked) self->wait();
                            });
    }

    void stop() {
      if (!descriptor.is_open()) return;
      asio::error_code ignored;
      descriptor.close(ignored);
      io_thread->finish();
    }

    const std::shared_ptr<IoThread> io_thread;
    asio::posix::stream_descriptor descriptor;  ///< of the loop, a copy for Asio's own set
  };

  explicit AsioLoop(std::shared_ptr<State> state) : state_(std::move(state)) {}

  static Error no_descriptor() {
    Error error;
    error.code = ErrorCode::resource_exhausted;
    error.operation = "create";
    error.decided_by = "client";
    error.detail = "the system has no descriptor left";
    return error;
  }

  std::shared_ptr<State> state_;
};

/// Waits for the end of a communicator. A communicator's calls block, so they have a thread of
/// their own; an io_context hears by this when it has ended.
class CommunicatorEnd {
 public:
  /// Sets `on_end` of the options with which one communicator is then made.
  explicit CommunicatorEnd(CommunicatorOptions& options) {
    options.on_end = [state = state_](const Error& error) { state->tell(error); };
  }

  /// Completes with the reason of the end; with OnLoss::notify also with each loss, one after the
  /// other. What came before this call is not lost.
  ///
  /// errors  always one: the reason, cancelled (by the slot), or busy (another call waits)
  template <class Token>
  auto async_wait(Token&& token) {
    return detail::asio_start<void>(
        [state = state_](Handler<void> handler) {
          state->wait(std::move(handler));
          return Waiting{state};
        },
        std::forward<Token>(token), detail::AsIs());
  }

 private:
  class State {
   public:
    void tell(const Error& error) {
      Handler<void> waiting;
      {
        const std::lock_guard lock(mutex_);
        if (!waiting_) return told_.push_back(error);
        waiting.swap(waiting_);
      }
      waiting(error);
    }

    void wait(Handler<void> handler) {
      Error error;
      error.code = ErrorCode::busy;
      {
        const std::lock_guard lock(mutex_);
        if (!waiting_ && told_.empty()) {
          waiting_ = std::move(handler);
          return;
        }
        if (!waiting_) {
          error = std::move(told_.front());
          told_.pop_front();
        }
      }
      handler(std::move(error));
    }

    void cancel() {
      Handler<void> waiting;
      {
        const std::lock_guard lock(mutex_);
        waiting.swap(waiting_);
      }
      Error error;
      error.code = ErrorCode::cancelled;
      if (waiting) waiting(std::move(error));
    }

   private:
    std::mutex mutex_;
    std::deque<Error> told_;
    Handler<void> waiting_;
  };

  struct Waiting {
    void cancel() {
      if (const auto held = state.lock()) held->cancel();
    }
    std::weak_ptr<State> state;
  };

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

MUSTER_END_NAMESPACE
