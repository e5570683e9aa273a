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
