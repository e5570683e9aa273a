#include "client/handlers.h"

#include <exception>
#include <new>
#include <string>

#include "base/monotonic_now.h"
#include "net/io_thread.h"

namespace muster::client {
namespace {

thread_local int inline_depth = 0;

/// While it lives, this thread is in a handler: it must not wait for the I/O thread.
struct InlineWork {
  InlineWork() { ++inline_depth; }
  ~InlineWork() { --inline_depth; }
  InlineWork(const InlineWork&) = delete;
  InlineWork& operator=(const InlineWork&) = delete;
};

void write_log(const Logger& logger, LogLevel level, std::string_view line) {
  if (!logger) return;
  try {
    logger(level, printable(line));
  } catch (...) {  // a logger has nobody to complain to
  }
}

class FunctionJob final : public Job {
 public:
  FunctionJob(std::string_view what, std::function<void()> work)
      : Job(what), work_(std::move(work)) {}

 private:
  void work() override { work_(); }

  const std::function<void()> work_;
};

}  // namespace

void Job::work_guarded() {
  const auto begun = base::monotonic_now();
  const auto complain = [&](const std::string& thrown) {
    write_log(*logger_, LogLevel::error,
              "the handler of " + std::string(what_) + " threw: " + thrown);
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
  write_log(*logger_, LogLevel::warning,
            "the handler of " + std::string(what_) + " took " +
                std::to_string(taken / std::chrono::milliseconds(1)) + " ms");
}

void Job::run() {
  const std::unique_ptr<Job> self(this);
  is_inline_ ? work_inline() : work_guarded();
}

void Job::work_inline() {
  const InlineWork inside;
  work_guarded();
}

Handlers::Handlers(const StoreOptions& options, IoThread& io_thread)
    : io_thread_(io_thread),
      place_(options.handlers),
      executor_(options.executor),
      logger_(std::make_shared<const Logger>(options.logger)) {}

void Handlers::dispatch(std::string_view what, std::function<void()> work) const {
  dispatch(std::make_unique<FunctionJob>(what, std::move(work)), When::now);
}

void Handlers::dispatch(std::unique_ptr<Job> job) const { dispatch(std::move(job), When::now); }

void Handlers::dispatch_later(std::string_view what, std::function<void()> work) const {
  dispatch(std::make_unique<FunctionJob>(what, std::move(work)), When::later);
}

void Handlers::dispatch_later(std::unique_ptr<Job> job) const {
  dispatch(std::move(job), When::later);
}

void Handlers::dispatch(std::unique_ptr<Job> job, When when) const {
  const std::string_view what = job->what_;
  job->logger_ = logger_;
  job->is_inline_ = place_ == HandlerPlace::io_thread;
  try {
    post(job, when);
  } catch (const std::bad_alloc&) {  // it runs here rather than never
    log(LogLevel::error, "memory is out: a handler runs where its call has ended");
    if (job) job->work_inline();
  } catch (const std::exception& exception) {
    log(LogLevel::error,
        "a handler of " + std::string(what) + " could not be run: " + exception.what());
  } catch (...) {
    log(LogLevel::error,
        "a handler of " + std::string(what) + " could not be run: something was thrown");
  }
}

/// Takes the job, unless it throws.
void Handlers::post(std::unique_ptr<Job>& job, When when) const {
  IoThread::Impl& io = io_thread_.impl();
  if (place_ == HandlerPlace::io_thread) {
    net::Task& task = *job.release();
    return when == When::now ? io.run_inline_handler(task) : io.post_inline_handler(task);
  }
  if (!executor_) {
    io.post_handler(*job);
    job.release();  // it may have run by now
    return;
  }
  const auto shared = std::make_shared<std::unique_ptr<Job>>();
  std::function<void()> work = [shared] {
    if (const auto once = std::move(*shared)) once->work_guarded();
  };
  *shared = std::move(job);
  try {
    executor_(std::move(work));
  } catch (const std::bad_alloc&) {
    job = std::move(*shared);
    throw;
  }
}

void Handlers::log(LogLevel level, std::string_view line) const {
  write_log(*logger_, level, line);
}

bool Handlers::is_inside_inline_handler() { return inline_depth > 0; }

}  // namespace muster::client
