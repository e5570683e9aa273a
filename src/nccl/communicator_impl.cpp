#include "nccl/communicator_impl.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/failure.h"
#include "communicator/patience.h"
#include "nccl/functions.h"

MUSTER_BEGIN_NAMESPACE

using Clock = std::chrono::steady_clock;
using nccl::Device;
using nccl::Doomed;
using nccl::in_progress;
using nccl::Turns;

namespace {

constexpr auto shortest_pause = std::chrono::microseconds(20);
constexpr auto longest_pause = std::chrono::milliseconds(1);
constexpr auto shortest_patience = std::chrono::milliseconds(100);  // of what only tidies up

}  // namespace

NcclCommunicator::Impl::Impl(nccl::Ground ground, NcclOptions options, communicator::Place place,
                             std::shared_ptr<nccl::Shared> shared)
    : HasLife(std::move(place), options.on_loss, options.on_over),
      ground_(std::move(ground)),
      options_(std::move(options)),
      shared_(std::move(shared)) {}

NcclCommunicator::Impl::~Impl() {
  unwatch();
  end(client::failure(ErrorCode::aborted, "the communicator's handle is gone"));
}

Result<void> NcclCommunicator::Impl::begin(const NcclUniqueId& id, Clock::time_point until) {
  struct Begun {
    int result = 0;
    NcclHandle handle = nullptr;
  };
  const auto left = std::max(until - Clock::now(), Clock::duration(shortest_patience));
  const auto begun = communicator::with_patience<Begun>(
      "ncclCommInitRankConfig", std::chrono::duration_cast<Duration>(left),
      [ground = ground_, id, size = place().world_size, rank = place().rank,
       ctas_max = options_.ctas_max]() -> Result<Begun> {
        NcclConfig config;
        if (ctas_max > 0) config.ctas_max = ctas_max;
        const Device::Current current(*ground.device);
        Begun made;
        made.result = ground.nccl.comm_init_rank_config(&made.handle, size, id, rank, &config);
        return made;
      },
      [ground = ground_](const Result<Begun>& late) {
        const Device::Current current(*ground.device);
        if (late && late->handle != nullptr) ground.nccl.comm_abort(late->handle);
      },
      [this] { return gate().is_closed(); });
  if (!begun && gate().is_closed()) return *gate().reason();
  if (!begun && begun.error().code == ErrorCode::timed_out) {  // it is this rank that hangs
    return client::failure(ErrorCode::nccl, begun.error().detail);
  }
  if (!begun) return begun.error();
  handle_ = begun->handle;
  if (begun->result == 0 || begun->result == in_progress) return {};
  return nccl::nccl_error(functions(), begun->result, "ncclCommInitRankConfig");
}

Result<void> NcclCommunicator::Impl::settle(Clock::time_point until,
                                            const std::function<Result<void>()>& meanwhile) const {
  std::chrono::microseconds pause = shortest_pause;
  for (;;) {
    if (gate().is_closed()) return *gate().reason();  // its handle may go at any moment
    int state = 0;
    const int result = functions().comm_get_async_error(handle_, &state);
    if (result != 0) return nccl::nccl_error(functions(), result, "ncclCommGetAsyncError", handle_);
    if (state == 0) return {};
    if (state != in_progress) return nccl::nccl_error(functions(), state, "NCCL", handle_);
    if (Clock::now() >= until) {
      return client::failure(ErrorCode::timed_out, "NCCL is still at it");
    }
    if (meanwhile) {
      if (auto told = meanwhile(); !told) return told;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::microseconds>(2 * pause, longest_pause);
  }
}

std::vector<Doomed> NcclCommunicator::Impl::doom(Error why, bool& was_first) {
  was_first = life().close(std::move(why));
  // Also when it was closed before: NCCL may have been giving the handle then.
  if (handle_ == nullptr || is_claimed_.exchange(true)) return {};
  return {{ground_.nccl, ground_.device, handle_, life().gate(),
           communicator::patience_of(options_.abort_patience)}};
}

void NcclCommunicator::Impl::end(Error why) {
  bool was_first = false;
  if (auto doomed = doom(std::move(why), was_first); !doomed.empty()) reap(std::move(doomed));
  if (was_first) life().tell_host();
}

/// NCCL may take as long as it likes over it.
Result<void> NcclCommunicator::Impl::destroy(Clock::time_point until) {
  const auto left = std::max(until - Clock::now(), Clock::duration(shortest_patience));
  const auto destroyed = communicator::with_patience<bool>(
      "ncclCommDestroy", std::chrono::duration_cast<Duration>(left),
      [self = shared_from_this()]() -> Result<bool> {
        const Device::Current current(self->device());
        const int result = self->functions().comm_destroy(self->handle_);
        if (result == 0) return true;
        return nccl::nccl_error(self->functions(), result, "ncclCommDestroy");
      },
      [](const Result<bool>&) {});
  if (destroyed) return {};
  if (destroyed.error().code == ErrorCode::timed_out) nccl::Reaper::count_given_up();
  return destroyed.error();
}

Result<void> NcclCommunicator::Impl::close(Duration timeout) {
  const auto began = Clock::now();
  {
    auto pass = gate().enter();
    if (!pass) return about("close", std::move(pass).error(), began);
    const auto turn = this->turn(Turns::Taker::anyone, began + timeout);
    if (!turn) {
      end(turn.error());
      return about("close", turn.error(), began);
    }
    life().begin_closing();
    const Device::Current current(device());
    const int result = functions().comm_finalize(handle_);
    if (auto finalized = see_done({"close", "ncclCommFinalize"}, result, began + timeout);
        !finalized) {
      end(finalized.error());  // also what NCCL refuses
      return about("close", std::move(finalized).error(), began);
    }
    if (is_claimed_.exchange(true)) {
      const auto closed = client::failure(ErrorCode::closed, "another call closes it");
      return about("close", gate().reason().value_or(closed), began);
    }
    // Those that wait for their turn do not get it any more.
    gate().close(client::failure(ErrorCode::closed, "the communicator was closed"));
  }
  const auto left = std::max(began + timeout - Clock::now(), Clock::duration(shortest_patience));
  gate().wait_empty(std::chrono::duration_cast<Duration>(left));
  auto destroyed = destroy(began + timeout);
  if (!destroyed) return about("close", std::move(destroyed).error(), began);
  return {};
}

MUSTER_END_NAMESPACE
