#include "communicator/lifecycle.h"

#include <algorithm>
#include <utility>

namespace muster::communicator {
namespace {

/// Whether the error says nothing about the ranks: the communicator goes on without a watch.
bool is_about_control_plane(ErrorCode code) {
  return code == ErrorCode::server_restarted || code == ErrorCode::unavailable ||
         code == ErrorCode::suspended || code == ErrorCode::outcome_unknown ||
         code == ErrorCode::stale_epoch;
}

/// Whether nothing more will be told of the group, although its ranks may go on.
bool is_end_of_watch(ErrorCode code) {
  return code == ErrorCode::server_restarted || code == ErrorCode::stale_epoch;
}

}  // namespace

Lifecycle::Lifecycle(OnLoss on_loss, Callback on_end)
    : on_loss_(on_loss), on_end_(std::move(on_end)) {}

void Lifecycle::watch(StatelessProcessGroup& group, Callback end) {
  {
    const std::lock_guard lock(cause_mutex_);
    losses_.clear();  // they belong to the group that was watched before
    hears_losses_ = true;
  }
  GroupWatch watch =
      group.watch([weak = weak_from_this(), end = std::move(end)](const Error& error) {
        if (const auto self = weak.lock()) self->hear(error, end);
      });
  const std::lock_guard lock(watch_mutex_);
  watch_ = std::move(watch);
}

void Lifecycle::unwatch() {
  const std::lock_guard lock(watch_mutex_);
  watch_ = GroupWatch();
}

/// Usually runs on the store's I/O thread.
void Lifecycle::hear(const Error& error, const Callback& end) {
  {
    const std::lock_guard lock(cause_mutex_);
    if (is_end_of_watch(error.code)) hears_losses_ = false;
    if (!is_about_control_plane(error.code)) losses_.push_back({error, Clock::now()});
  }
  cause_came_.notify_all();
  if (is_about_control_plane(error.code)) return;
  if (is_closing_ && error.code == ErrorCode::rank_left) return;
  if (on_loss_ == OnLoss::abort || !is_committed_) return end(error);
  if (!gate_->is_closed()) notify(error);
}

void Lifecycle::notify(const Error& why) const {
  if (!is_committed_ || !on_end_) return;
  try {
    on_end_(why);
  } catch (...) {  // no caller could handle it
  }
}

std::optional<Error> Lifecycle::commit(CreationTimes times) {
  const std::lock_guard lock(commit_mutex_);
  if (auto reason = gate_->reason()) return reason;
  creation_times_ = times;
  is_committed_ = true;
  return std::nullopt;
}

bool Lifecycle::close(Error why) {
  {
    const std::lock_guard lock(commit_mutex_);
    if (!gate_->close(why)) return false;
  }
  {
    // A thread in `await_cause` has either seen the gate closed, or sleeps and will be woken.
    const std::lock_guard lock(cause_mutex_);
  }
  cause_came_.notify_all();
  return true;
}

void Lifecycle::notify_host() const {
  if (const auto reason = gate_->reason()) notify(*reason);
}

const Lifecycle::Loss* Lifecycle::find_loss(Clock::time_point since, int peer) const {
  const auto is_of_peer = [peer](const Loss& loss) {
    const auto& ranges = loss.error.rank_ranges;
    return std::any_of(ranges.begin(), ranges.end(), [peer](const RankRange& range) {
      return range.first <= peer && peer <= range.last;
    });
  };
  const auto found = std::find_if(losses_.begin(), losses_.end(), is_of_peer);
  if (found != losses_.end()) return &*found;
  return losses_.empty() || losses_.back().heard < since ? nullptr : &losses_.back();
}

std::optional<Error> Lifecycle::await_cause(Duration limit, Clock::time_point since, int peer) {
  std::unique_lock lock(cause_mutex_);
  const Loss* cause = nullptr;
  cause_came_.wait_for(lock, limit, [&] {
    cause = find_loss(since, peer);
    return cause != nullptr || gate_->is_closed() || !hears_losses_;
  });
  if (gate_->is_closed()) return gate_->reason();
  return cause == nullptr ? std::nullopt : std::optional(cause->error);
}

bool Lifecycle::hears_losses() {
  const std::lock_guard lock(cause_mutex_);
  return hears_losses_;
}

}  // namespace muster::communicator
