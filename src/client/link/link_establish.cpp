// Establishing: opening a session or, after its end, a new one, and who waits for that.

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/monotonic_now.h"
#include "client/failure.h"
#include "client/link/link.h"

namespace muster::client {

using base::monotonic_now;

Call Link::establish(Duration timeout, Establishment done) {
  // Outlives the lock: what `done` holds may close this link when it goes.
  Establishing waiting;
  waiting.done = std::move(done);
  const std::uint64_t number = next_serial();
  try {
    const std::lock_guard lock(mutex_);
    const Instant now = monotonic_now();
    waiting.number = number;
    waiting.begun = now;
    waiting.deadline = base::deadline_after(now, timeout);
    if (establishing_.empty()) attempt_count_ = 0;
    establishing_.push_back(std::move(waiting));
    protocol_->open(now);
  } catch (const std::bad_alloc&) {
    take_back(number);
    break_down();
    throw;
  }
  wake();
  return {std::shared_ptr<Call::Impl>(shared_from_this(), &establishing_calls_), number};
}

void Link::take_back(std::uint64_t establishing) {
  Establishing waiting;  // outlives the lock
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(
      establishing_.begin(), establishing_.end(),
      [establishing](const Establishing& each) { return each.number == establishing; });
  if (found == establishing_.end()) return;
  waiting = std::move(*found);
  establishing_.erase(found);
}

std::optional<Result<void>> Link::outcome_of(const Establishing& waiting, Instant now) const {
  if (protocol_->established()) return Result<void>();
  if (const Error* const failed = protocol_->session().failure()) {
    const bool may_pass =
        failed->code == ErrorCode::unavailable || failed->code == ErrorCode::suspended;
    if (!may_pass) return Result<void>(*failed);
  }
  if (waiting.is_cancelled) {
    return Result<void>(client::failure(ErrorCode::cancelled, "cancelled by its caller"));
  }
  if (now >= waiting.deadline) return Result<void>(not_established(waiting, now));
  return std::nullopt;
}

Error Link::not_established(const Establishing& waiting, Instant now) const {
  Error error = protocol_->session().last_trouble();
  error.where = address_text_;
  error.decided_by = "client";
  error.detail = "tried " + std::to_string(attempt_count_) + " times in " +
                 std::to_string((now - waiting.begun) / std::chrono::milliseconds(1)) +
                 " ms; last: " + error.detail;
  error.actual = 0;
  return error;
}

void Link::settle_establishing() {
  std::vector<std::pair<Establishing, Result<void>>> over;
  {
    const std::lock_guard lock(mutex_);
    const Instant now = monotonic_now();
    for (auto waiting = establishing_.begin(); waiting != establishing_.end();) {
      auto outcome = outcome_of(*waiting, now);
      if (!outcome) {
        ++waiting;
        continue;
      }
      over.emplace_back(std::move(*waiting), *std::move(outcome));
      waiting = establishing_.erase(waiting);
    }
  }
  for (auto& [waiting, outcome] : over) waiting.done(std::move(outcome));
}

}  // namespace muster::client
