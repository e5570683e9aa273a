#include "communicator/life.h"

#include <algorithm>
#include <utility>

#include "base/rank_ranges.h"
#include "client/failure.h"
#include "communicator/report.h"

namespace muster::communicator {
namespace {

/// What says nothing of the ranks themselves: the communicator goes on without a watch.
bool is_about_control_plane(ErrorCode code) {
  return code == ErrorCode::server_restarted || code == ErrorCode::unavailable ||
         code == ErrorCode::suspended || code == ErrorCode::outcome_unknown ||
         code == ErrorCode::stale_epoch;
}

/// Whom a rank of a communicator is: its process, and its rank there.
std::string identity_of(const ProcessId& id, int rank) {
  std::string text(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size());
  append_number(text, static_cast<std::uint32_t>(rank));
  return text;
}

/// The ranks that are another process than before.
std::vector<RankRange> strangers(const std::vector<std::string>& now,
                                 const std::vector<ProcessId>& before) {
  std::vector<RankRange> ranges;
  for (std::size_t rank = 0; rank < std::max(now.size(), before.size()); ++rank) {
    const bool is_same = rank < now.size() && rank < before.size() &&
                         now[rank] == identity_of(before[rank], static_cast<int>(rank));
    if (!is_same) base::add_to(ranges, static_cast<int>(rank));
  }
  return ranges;
}

}  // namespace

Place::Place(const StatelessProcessGroup& of)
    : group(of.name()),
      epoch(of.epoch()),
      where(of.store().address()),
      rank(of.rank()),
      world_size(of.world_size()) {}

Life::Life(Place place, OnLoss on_loss, Told on_over)
    : place_(std::move(place)), on_loss_(on_loss), on_over_(std::move(on_over)) {}

void Life::watch(StatelessProcessGroup& group, Told end) {
  {
    const std::lock_guard lock(cause_mutex_);
    losses_.clear();  // of what was watched before
  }
  GroupWatch watch =
      group.watch([weak = weak_from_this(), end = std::move(end)](const Error& error) {
        if (const auto self = weak.lock()) self->hear(error, end);
      });
  const std::lock_guard lock(watch_mutex_);
  watch_ = std::move(watch);
}

void Life::unwatch() {
  const std::lock_guard lock(watch_mutex_);
  watch_ = GroupWatch();
}

/// On the store's I/O thread, mostly.
void Life::hear(const Error& error, const Told& end) {
  if (is_about_control_plane(error.code)) return;
  {
    const std::lock_guard lock(cause_mutex_);
    losses_.push_back({error, Clock::now()});
  }
  cause_came_.notify_all();
  if (is_closing_ && error.code == ErrorCode::rank_left) return;
  if (on_loss_ == OnLoss::abort || !is_committed_) return end(error);
  if (!gate_->is_closed()) say(error);
}

void Life::say(const Error& why) const {
  if (!is_committed_ || !on_over_) return;
  try {
    on_over_(why);
  } catch (...) {  // there is nobody to whom it could be told
  }
}

std::optional<Error> Life::commit(MakingTimes making) {
  const std::lock_guard lock(commit_mutex_);
  if (auto reason = gate_->reason()) return reason;
  making_ = making;
  is_committed_ = true;
  return std::nullopt;
}

bool Life::close(Error why) {
  why.group = place_.group;
  why.epoch = place_.epoch;
  {
    const std::lock_guard lock(commit_mutex_);
    if (!gate_->close(why)) return false;
  }
  {
    const std::lock_guard lock(cause_mutex_);  // who waits has looked, or sleeps
  }
  cause_came_.notify_all();
  return true;
}

void Life::tell_host() const {
  if (const auto reason = gate_->reason()) say(*reason);
}

const Life::Loss* Life::find_loss(Clock::time_point since, int peer) const {
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

std::optional<Error> Life::await_cause(Duration limit, Clock::time_point since, int peer) {
  std::unique_lock lock(cause_mutex_);
  const Loss* cause = nullptr;
  cause_came_.wait_for(lock, limit, [&] {
    cause = find_loss(since, peer);
    return cause != nullptr || gate_->is_closed();
  });
  if (gate_->is_closed()) return gate_->reason();
  return cause == nullptr ? std::nullopt : std::optional(cause->error);
}

Result<void> Life::attach(StatelessProcessGroup& group, std::uint32_t codec, Duration timeout,
                          Told end) {
  const auto began = Clock::now();
  if (const auto reason = gate_->reason()) return about("attach", *reason, began);
  const auto all =
      group.all_gather_bytes(identity_of(group.store().process().id, place_.rank), codec, timeout);
  if (!all) return about("attach", all.error(), began);
  auto others = strangers(*all, place_.processes);
  if (!others.empty()) {
    Error error =
        client::failure(ErrorCode::mismatch, "another process or rank than it was made with");
    error.rank_ranges = std::move(others);
    return about("attach", std::move(error), began);
  }
  watch(group, std::move(end));
  return {};
}

Error Life::about(std::string_view operation, Error error, Clock::time_point began) const {
  error.operation = operation;
  error.group = place_.group;
  error.epoch = place_.epoch;
  if (error.where.empty()) error.where = place_.where;
  if (error.decided_by.empty()) error.decided_by = "client";
  error.elapsed = std::chrono::duration_cast<Duration>(Clock::now() - began);
  return error;
}

}  // namespace muster::communicator
