#include "client/link/establishments.h"

#include <algorithm>

#include "client/failure.h"

namespace muster::client {

void Establishments::add(Waiting&& waiting) {
  if (waiting_.empty()) attempt_count_ = 0;
  waiting_.push_back(std::move(waiting));
}

std::optional<Establishments::Waiting> Establishments::take_back(std::uint64_t number) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [number](const Waiting& each) { return each.number == number; });
  if (found == waiting_.end()) return std::nullopt;
  Waiting waiting = std::move(*found);
  waiting_.erase(found);
  return waiting;
}

void Establishments::cancel(std::uint64_t number) {
  for (Waiting& each : waiting_) {
    if (each.number == number) each.is_cancelled = true;
  }
}

void Establishments::cancel(const CancelRequests& requests) {
  for (Waiting& each : waiting_) {
    if (requests.covers(each.number, nullptr)) each.is_cancelled = true;
  }
}

std::vector<std::pair<Establishments::Waiting, Result<void>>> Establishments::take_settled(
    const protocol::Session& session, bool is_established, Instant now,
    const std::string& awaited) {
  const bool stands = is_established && session.failure() == nullptr;
  std::vector<std::pair<Waiting, Result<void>>> settled;
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    auto outcome = stands ? Result<void>() : outcome_of(*waiting, session, now, awaited);
    if (!outcome) {
      ++waiting;
      continue;
    }
    settled.emplace_back(std::move(*waiting), *std::move(outcome));
    waiting = waiting_.erase(waiting);
  }
  return settled;
}

std::optional<Result<void>> Establishments::outcome_of(const Waiting& waiting,
                                                       const protocol::Session& session,
                                                       Instant now,
                                                       const std::string& awaited) const {
  if (const Error* const failed = session.failure()) {
    const bool may_pass =
        session.admission() != protocol::Admission::over &&
        (failed->code == ErrorCode::unavailable || failed->code == ErrorCode::suspended);
    if (!may_pass) return Result<void>(*failed);
  }
  if (waiting.is_cancelled) {
    return Result<void>(failure(ErrorCode::cancelled, "cancelled by its caller"));
  }
  if (now >= waiting.deadline) return Result<void>(not_established(waiting, session, now, awaited));
  return std::nullopt;
}

Error Establishments::not_established(const Waiting& waiting, const protocol::Session& session,
                                      Instant now, const std::string& awaited) const {
  Error error = session.last_trouble();
  error.where = session.options().where;
  error.decided_by = "client";
  error.detail = "tried " + std::to_string(attempt_count_) + " times in " +
                 std::to_string((now - waiting.begun) / std::chrono::milliseconds(1)) +
                 " ms; last: " + error.detail;
  if (!awaited.empty()) error.detail += "; waited for " + awaited;
  error.actual = 0;
  return error;
}

Instant Establishments::next_deadline() const {
  Instant next = base::far_future;
  for (const Waiting& each : waiting_) next = std::min(next, each.deadline);
  return next;
}

}  // namespace muster::client
