#include "nccl/communicator_impl.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "client/failure.h"
#include "client/interruption.h"
#include "communicator/timed_call.h"
#include "communicator/timeouts.h"
#include "muster/codec.h"
#include "nccl/functions.h"

// How an NCCL communicator begins and ends.

namespace muster::nccl_internal {
namespace {

constexpr auto shortest_pause = std::chrono::microseconds(20);
constexpr auto longest_pause = std::chrono::milliseconds(1);
/// Cleaning up gets at least this time, also after the deadline.
constexpr auto shortest_cleanup = std::chrono::milliseconds(100);

/// A call of ncclCommInitRankConfig, on a thread of its own.
struct Beginning {
  nccl::Handle handle = nullptr;     ///< NCCL writes it before it waits for the other ranks
  std::atomic<bool> is_kept{false};  ///< who waits no more sees to its abort

  nccl::Handle early_handle() { return std::atomic_ref(handle).load(); }
};

}  // namespace

Impl::Impl(Prepared prepared, nccl::Options options, communicator::Membership membership,
           std::shared_ptr<Shared> shared)
    : CommonImpl(std::move(membership), options, codec_id::nccl_communicator),
      prepared_(std::move(prepared)),
      options_(std::move(options)),
      shared_(std::move(shared)) {}

Impl::~Impl() {
  lifecycle().unwatch();
  end(client::failure(ErrorCode::aborted, "the communicator's handle is gone"));
}

Result<void> Impl::begin(const nccl::UniqueId& id, Clock::time_point until,
                         const std::function<Result<void>()>& meanwhile) {
  const auto beginning = std::make_shared<Beginning>();
  std::optional<Error> told;
  const auto is_over = [&] {
    if (gate().is_closed()) return true;
    if (!is_blocking() || beginning->early_handle() == nullptr) return false;
    if (auto heard = meanwhile(); !heard) told = std::move(heard).error();
    return told.has_value();
  };
  const auto left = std::max(until - Clock::now(), Clock::duration(shortest_cleanup));
  const auto begun = communicator::call_with_timeout<int>(
      "ncclCommInitRankConfig", std::chrono::duration_cast<Duration>(left),
      [prepared = prepared_, id, size = membership().world_size, rank = membership().rank,
       options = options_, beginning]() -> Result<int> {
        nccl::Config config;
        config.blocking = options.mode == nccl::Mode::blocking ? 1 : 0;
        if (options.ctas_max > 0) config.ctas_max = options.ctas_max;
        const Device::Current current(*prepared.device);
        return prepared.nccl.comm_init_rank_config(&beginning->handle, size, id, rank, &config);
      },
      [prepared = prepared_, beginning](const Result<int>&) {
        if (beginning->handle == nullptr || beginning->is_kept.exchange(true)) return;
        const Device::Current current(*prepared.device);
        prepared.nccl.comm_abort(beginning->handle);
      },
      is_over);
  if (begun.has_value()) {
    handle_ = beginning->handle;
    if (*begun == success || *begun == in_progress) return {};
    return nccl_error(functions(), *begun, "ncclCommInitRankConfig");
  }
  // One that blocks returns only when it is aborted: at its end, when the vote is over. Before, the
  // others would take that for a cause.
  auto* const handle = is_blocking() ? beginning->early_handle() : nullptr;
  if (handle != nullptr && !beginning->is_kept.exchange(true)) handle_ = handle;
  if (gate().is_closed()) return *gate().reason();
  if (told) return *std::move(told);
  if (begun.error().code != ErrorCode::timed_out) return begun.error();
  if (handle != nullptr) {  // it waits for other ranks
    return client::failure(ErrorCode::timed_out, "NCCL is still at it");
  }
  return client::failure(ErrorCode::nccl, begun.error().detail);  // this rank hangs
}

Result<void> Impl::settle(Clock::time_point until,
                          const std::function<Result<void>()>& meanwhile) const {
  client::Interruption interruption;
  std::chrono::microseconds pause = shortest_pause;
  for (;;) {
    if (gate().is_closed()) return *gate().reason();  // the handle may be destroyed
    int state = 0;
    const int result = functions().comm_get_async_error(handle_, &state);
    if (result != 0) return nccl_error(functions(), result, "ncclCommGetAsyncError", handle_);
    if (state == 0) return {};
    if (state != in_progress) return nccl_error(functions(), state, "NCCL", handle_);
    if (Clock::now() >= until) {
      return client::failure(ErrorCode::timed_out, "NCCL is still at it");
    }
    if (meanwhile) {
      if (auto told = meanwhile(); !told) return told;
    }
    if (interruption.is_there()) return client::Interruption::error();
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::microseconds>(2 * pause, longest_pause);
  }
}

Impl::Ending Impl::begin_end(Error why) {
  Ending ending;
  ending.is_first = close_gate(std::move(why));
  // Also if it had ended before: then NCCL may not have returned the handle yet.
  if (handle_ == nullptr || is_handle_taken_.exchange(true)) return ending;
  ending.abort.push_back(abort_of(handle_));
  return ending;
}

AbortJob Impl::abort_of(nccl::Handle handle) const {
  return {prepared_.nccl,
          prepared_.device,
          handle,
          lifecycle().gate(),
          communicator::abort_timeout_of(options_.abort_timeout),
          inside_};
}

void Impl::end(Error why) {
  auto ending = begin_end(std::move(why));
  if (!ending.abort.empty()) shared_->aborter->submit(std::move(ending.abort));
  if (ending.is_first) lifecycle().notify_host();
}

void Impl::abort_all(const std::vector<std::shared_ptr<Communicator::Impl>>& communicators) {
  std::vector<AbortJob> jobs;
  std::vector<Impl*> ended;
  for (const auto& each : communicators) {
    auto& impl = static_cast<Impl&>(*each);
    auto ending = impl.begin_end(client::failure(ErrorCode::aborted, "by its host"));
    for (AbortJob& job : ending.abort) jobs.push_back(std::move(job));
    if (ending.is_first) ended.push_back(&impl);
  }
  if (!jobs.empty()) shared_->aborter->submit(std::move(jobs));
  for (Impl* const each : ended) each->lifecycle().notify_host();
}

/// Calls ncclCommFinalize. One that blocks does so on a thread of its own: while a graph holds an
/// operation of the communicator NCCL does not return, not even when it is aborted.
Result<int> Impl::call_finalize(Clock::time_point until) {
  const auto finalize = [self = self()]() -> Result<int> {
    const auto pass = self->gate().enter();  // the caller may have left
    if (!pass) return pass.error();
    const Device::Current current(self->device());
    const Inside mark(self->inside());
    return self->functions().comm_finalize(self->handle_);
  };
  if (!is_blocking()) return finalize();
  const auto left = std::max(until - Clock::now(), Clock::duration(0));
  return communicator::call_with_timeout<int>(
      "ncclCommFinalize", std::chrono::duration_cast<Duration>(left), finalize,
      [](const Result<int>&) {}, [this] { return gate().is_closed(); });
}

/// Ends NCCL's operations, and takes the handle.
Result<void> Impl::finalize(Clock::time_point until) {
  const auto pass = gate().enter();
  if (!pass) return pass.error();
  const auto lock = lock_device(DeviceLocks::Role::anyone, until);
  if (!lock) {
    end(lock.error());
    return lock.error();
  }
  lifecycle().begin_closing();
  const Device::Current current(device());
  const auto result = call_finalize(until);
  if (!result) {
    end(result.error());
    return *gate().reason();
  }
  if (auto done = see_done({"close", "ncclCommFinalize"}, *result, until); !done) {
    end(done.error());  // also where NCCL has refused the call
    return done;
  }
  if (is_handle_taken_.exchange(true)) {
    return gate().reason().value_or(client::failure(ErrorCode::closed, "another call closes it"));
  }
  // Threads that wait for the device do not get it any more.
  gate().close(client::failure(ErrorCode::closed, "the communicator was closed"));
  return {};
}

/// On a thread of its own, because NCCL may not return.
Result<void> Impl::destroy(Clock::time_point until) {
  const auto left = std::max(until - Clock::now(), Clock::duration(shortest_cleanup));
  const auto destroyed = communicator::call_with_timeout<bool>(
      "ncclCommDestroy", std::chrono::duration_cast<Duration>(left),
      [self = self()]() -> Result<bool> {
        const Device::Current current(self->device());
        const int result = self->functions().comm_destroy(self->handle_);
        if (result == success) return true;
        return nccl_error(self->functions(), result, "ncclCommDestroy");
      },
      [](const Result<bool>&) {});
  if (destroyed.has_value()) return {};
  if (destroyed.error().code == ErrorCode::timed_out) Aborter::count_given_up();
  return destroyed.error();
}

Result<void> Impl::close(Duration timeout) {
  const auto began = Clock::now();
  const auto until = began + timeout;
  if (auto finalized = finalize(until); !finalized) {
    return about("close", std::move(finalized).error(), began);
  }
  const auto left = std::max(until - Clock::now(), Clock::duration(shortest_cleanup));
  gate().wait_empty(std::chrono::duration_cast<Duration>(left));
  auto destroyed = destroy(until);
  if (!destroyed) return about("close", std::move(destroyed).error(), began);
  return {};
}

}  // namespace muster::nccl_internal
