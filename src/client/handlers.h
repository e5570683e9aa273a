#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "muster/io_thread.h"
#include "muster/store.h"

namespace muster::client {

/// Runs the application's functions (handlers, on_loss, on_session_end) where the options say.
/// One that is slow is logged, one that throws is logged and goes no further.
class Handlers {
 public:
  Handlers(const StoreOptions& options, IoThread& io_thread);

  /// Runs `work` once. From any thread; inline handlers run at once only on the I/O thread.
  ///
  /// what  for the log, such as "get"; lives as long as the program
  void dispatch(std::string_view what, std::function<void()> work) const;

  void log(LogLevel level, std::string_view line) const;

  /// Whether the caller is inside a handler that runs on some I/O thread.
  static bool is_inside_inline_handler();

  static constexpr Duration slow_after{std::chrono::milliseconds(100)};

 private:
  void post(std::string_view what, const std::shared_ptr<const std::function<void()>>& work) const;

  IoThread& io_thread_;
  HandlerPlace place_;
  Executor executor_;
  std::shared_ptr<const Logger> logger_;  // handlers outlive the store
};

}  // namespace muster::client
