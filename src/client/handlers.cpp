#include "client/handlers.h"

#include <exception>
#include <new>
#include <string>

#include "base/monotonic_now.h"
#include "net/io_thread.h"

namespace muster::client {
namespace {

thread_local int inline_depth = 0;

void write_log(const Logger& logger, LogLevel level, std::string_view line) {
  if (!logger) return;
  try {
    logger(level, line);
  } catch (...) {  // a logger has nobody to complain to
  }
}

void run(const Logger& logger, std::string_view what, const std::function<void()>& work) {
  const auto begun = base::monotonic_now();
  const auto complain = [&](const std::string& thrown) {
    write_log(logger, LogLevel::error, "the handler of " + std::string(what) + " threw: " + thrown);
  };
  try {
    work();
  } catch (const std::exception& exception) {
    complain(exception.what());
  } catch (...) {
    complain("something that is no std::exception");
  }
  const auto taken = base::monotonic_now() - begun;
  if (taken < Handlers::slow_after) return;
  write_log(logger, LogLevel::warning,
            "the handler of " + std::string(what) + " took " +
                std::to_string(taken / std::chrono::milliseconds(1)) + " ms");
}

void run_inline(const Logger& logger, std::string_view what, const std::function<void()>& work) {
  ++inline_depth;
  run(logger, what, work);
  --inline_depth;
}

}  // namespace

Handlers::Handlers(const StoreOptions& options, IoThread& io_thread)
    : io_thread_(io_thread),
      place_(options.handlers),
      executor_(options.executor),
      logger_(std::make_shared<const Logger>(options.logger)) {}

void Handlers::dispatch(std::string_view what, std::function<void()> work) const {
  std::shared_ptr<const std::function<void()>> shared;
  try {
    shared = std::make_shared<const std::function<void()>>(std::move(work));
    post(what, shared);
  } catch (const std::bad_alloc&) {  // it runs here rather than never
    log(LogLevel::error, "memory is out: a handler runs where its call has ended");
    run_inline(*logger_, what, shared ? *shared : work);
  } catch (const std::exception& exception) {
    log(LogLevel::error,
        "a handler of " + std::string(what) + " could not be run: " + exception.what());
  } catch (...) {
    log(LogLevel::error,
        "a handler of " + std::string(what) + " could not be run: something was thrown");
  }
}

void Handlers::post(std::string_view what,
                    const std::shared_ptr<const std::function<void()>>& work) const {
  if (place_ == HandlerPlace::io_thread) {
    if (io_thread_.impl().on_io_thread()) return run_inline(*logger_, what, *work);
    io_thread_.impl().loop().post(
        [logger = logger_, what, work] { run_inline(*logger, what, *work); });
    return;
  }
  std::function<void()> guarded = [logger = logger_, what, work] { run(*logger, what, *work); };
  if (executor_) return executor_(std::move(guarded));
  io_thread_.impl().post_handler(std::move(guarded));
}

void Handlers::log(LogLevel level, std::string_view line) const {
  write_log(*logger_, level, line);
}

bool Handlers::is_inside_inline_handler() { return inline_depth > 0; }

}  // namespace muster::client
