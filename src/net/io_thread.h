#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "muster/io_thread.h"
#include "net/asio.h"

MUSTER_BEGIN_NAMESPACE

/// What is behind an IoThread: an io_context with one thread, and a queue of handlers with
/// another that starts with the first handler.
class IoThread::Impl {
 public:
  explicit Impl(std::string name);
  ~Impl();

  asio::io_context& context() { return context_; }

  /// Runs `work` on the handler thread, in order.
  void post_handler(std::function<void()> work);

  /// Whether the caller runs on the I/O thread (a blocking call there would wait for itself).
  bool on_io_thread() const;
  bool on_handler_thread() const;

 private:
  void run_handlers();

  std::string name_;
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread io_;
  std::thread handlers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
};

MUSTER_END_NAMESPACE
