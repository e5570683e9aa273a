#include "nccl/warm_up.h"

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "client/failure.h"
#include "communicator/timed_call.h"
#include "nccl/functions.h"

namespace muster::nccl_internal {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* name = "the first collective";
constexpr std::size_t buffer_bytes = sizeof(float);
/// So much later it is clear that it does not look at the time any more.
constexpr std::chrono::milliseconds grace{50};

/// Shared by the thread that runs the collective and the thread that waits for it.
struct Progress {
  std::atomic<const char*> inside{nullptr};  ///< the function that should have returned at once
  std::atomic<bool> is_left{false};          ///< nobody waits any more
};

class WarmUp {
 public:
  WarmUp(Impl& impl, Progress& progress, Clock::time_point until)
      : impl_(impl), progress_(progress), until_(until) {}

  Result<void> run() {
    const auto pass = impl_.gate().enter();  // an abort waits for it
    if (!pass) return pass.error();
    const Device::Current current(impl_.device());
    Result<void> done = reserve();
    if (done) done = issue();
    if (done) done = wait();
    release();
    return done;
  }

 private:
  template <class Function>
  int call(const char* function, const Function& work) {
    progress_.inside = function;
    const int result = work();
    progress_.inside = nullptr;
    return result;
  }

  const nccl::CudaFunctions& cuda() const { return impl_.device().cuda(); }

  Result<void> reserve() {
    int result = call("cuStreamCreate", [&] {
      constexpr unsigned not_behind_default = 1;
      return cuda().stream_create(&stream_, not_behind_default);
    });
    if (result == 0) {
      result = call("cuMemAlloc", [&] { return cuda().mem_alloc(&memory_, buffer_bytes); });
    }
    if (result != 0) return cuda_error(cuda(), result, name);
    return {};
  }

  /// Others that warm up on the device take turns, but do not wait for what was issued: in a ring
  /// of groups each might wait for the next one. For the same reason one that blocks takes no turn.
  Result<void> issue() {
    std::optional<DeviceLocks::Lock> turn;
    if (!impl_.is_blocking()) {
      auto lock = impl_.lock_device(DeviceLocks::Role::anyone, until_);
      if (!lock) return lock.error();
      turn.emplace(*std::move(lock));
    }
    auto* const buffer = reinterpret_cast<void*>(memory_);
    const auto all_reduce = [&] {
      constexpr int uint8 = 1;
      constexpr int sum = 0;
      const Inside mark(impl_.inside());
      return impl_.functions().all_reduce(buffer, buffer, buffer_bytes, uint8, sum, impl_.handle(),
                                          stream_);
    };
    // One that blocks waits there for other ranks: that it does not return is not this rank's
    // fault.
    const int result = impl_.is_blocking() ? all_reduce() : call("ncclAllReduce", all_reduce);
    if (result == success || result == in_progress) return {};
    return nccl_error(impl_.functions(), result, "ncclAllReduce", impl_.handle());
  }

  /// Until the stream is idle.
  Result<void> wait() {
    constexpr int not_ready = 600;
    constexpr std::chrono::microseconds between_looks_at_stream{200};
    const auto is_left = [this]() -> Result<void> {
      if (!progress_.is_left) return {};
      return client::failure(ErrorCode::aborted, "nobody waits for it");
    };
    for (;;) {
      if (auto settled = impl_.settle(until_, is_left); !settled) return settled;
      const int result = call("cuStreamQuery", [&] { return cuda().stream_query(stream_); });
      if (result == 0) return {};
      if (result != not_ready) return cuda_error(cuda(), result, name);
      if (impl_.gate().is_closed()) return *impl_.gate().reason();
      if (Clock::now() >= until_) {
        return client::failure(ErrorCode::timed_out, std::string(name) + " did not end");
      }
      if (auto told = is_left(); !told) return told;
      std::this_thread::sleep_for(between_looks_at_stream);
    }
  }

  /// Memory that is in use stays.
  void release() {
    if (memory_ != 0 && cuda().stream_query(stream_) == 0) {
      call("cuMemFree", [&] { return cuda().mem_free(memory_); });
    }
    if (stream_ != nullptr) {
      call("cuStreamDestroy", [&] { return cuda().stream_destroy(stream_); });
    }
  }

  Impl& impl_;
  Progress& progress_;
  const Clock::time_point until_;
  nccl::CudaStream stream_ = nullptr;
  std::uintptr_t memory_ = 0;
};

}  // namespace

Result<void> warm_up(const std::shared_ptr<Impl>& impl, Clock::time_point until,
                     const std::function<Result<void>()>& meanwhile) {
  const auto progress = std::make_shared<Progress>();
  std::optional<Error> told;
  const auto is_over = [&] {
    if (impl->gate().is_closed()) return true;
    if (auto heard = meanwhile(); !heard) told = std::move(heard).error();
    return told.has_value();
  };
  const auto limit = std::max(until - Clock::now(), Clock::duration(0)) + grace;
  const auto done = communicator::call_with_timeout<bool>(
      name, std::chrono::duration_cast<Duration>(limit),
      [impl, progress, until]() -> Result<bool> {
        if (auto result = WarmUp(*impl, *progress, until).run(); !result) return result.error();
        return true;
      },
      [](const Result<bool>&) {}, is_over);
  progress->is_left = true;
  if (done.has_value()) return {};
  if (impl->gate().is_closed()) return *impl->gate().reason();
  if (told) return *std::move(told);
  const char* const inside = progress->inside;
  if (done.error().code == ErrorCode::timed_out && inside != nullptr) {  // it is this rank's
    return client::failure(ErrorCode::nccl,
                           std::string(name) + ": " + inside + " did not return in time");
  }
  return done.error();
}

}  // namespace muster::nccl_internal
