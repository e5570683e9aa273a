#include "nccl/watchdog.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "client/failure.h"
#include "communicator/timed_call.h"
#include "nccl/communicator_impl.h"

namespace muster::nccl_internal {

struct Watchdog::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Watch*> watches;  ///< few: one for each device, as a rule
  Clock::time_point wakes_at = Clock::time_point::max();
  bool has_thread = false;
  bool is_over = false;

  /// The first whose time has come; null: none, and `wakes_at` is when the next one's does.
  Watch* due(Clock::time_point now) {
    wakes_at = Clock::time_point::max();
    for (Watch* const watch : watches) {
      if (watch->is_over_) continue;
      if (watch->until_ <= now) return watch;
      wakes_at = std::min(wakes_at, watch->until_);
    }
    return nullptr;
  }
};

Watchdog::Watchdog() : state_(std::make_shared<State>()) {}

Watchdog::~Watchdog() {
  const std::lock_guard lock(state_->mutex);
  state_->is_over = true;
  state_->changed.notify_one();
}

Result<void> Watchdog::start() {
  const std::lock_guard lock(state_->mutex);
  if (state_->has_thread) return {};
  state_->has_thread =
      communicator::start_thread("muster-watchdog", [state = state_] { run(state); });
  if (state_->has_thread) return {};
  return client::failure(ErrorCode::resource_exhausted, "the system has no thread left");
}

void Watchdog::run(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (!state->is_over) {
    Watch* const due = state->due(Clock::now());
    if (due != nullptr) {
      due->is_over_ = true;
      auto impl = due->impl_.lock();
      lock.unlock();
      if (impl) {
        impl->end(client::failure(ErrorCode::timed_out, "NCCL is still at it"));
        impl.reset();  // it may be the last reference, and to this watchdog, too
      }
      lock.lock();
    } else if (state->wakes_at == Clock::time_point::max()) {
      state->changed.wait(lock);
    } else {
      state->changed.wait_until(lock, state->wakes_at);
    }
  }
}

Watchdog::Watch::Watch(Watchdog& watchdog, std::weak_ptr<Impl> impl, Clock::time_point until)
    : watchdog_(watchdog), impl_(std::move(impl)), until_(until) {
  State& state = *watchdog_.state_;
  const std::lock_guard lock(state.mutex);
  state.watches.push_back(this);
  if (until_ < state.wakes_at) state.changed.notify_one();
}

Watchdog::Watch::~Watch() {
  State& state = *watchdog_.state_;
  const std::lock_guard lock(state.mutex);
  state.watches.erase(std::find(state.watches.begin(), state.watches.end(), this));
}

}  // namespace muster::nccl_internal
