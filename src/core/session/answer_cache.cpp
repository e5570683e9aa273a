#include "core/session/answer_cache.h"

#include <utility>

#include "core/session/session.h"

namespace muster::core {
namespace {

/// What a cached answer takes beside its head: its memory, and a bucket.
constexpr std::uint64_t cached_answer_bytes = sizeof(Answer) + 48;

/// What a spare one keeps: the heads of usual answers take less.
constexpr std::size_t spare_head_bytes_max = 256;

}  // namespace

/// Charged in any case: the work is done. Whether there is room was asked before, see Engine.
const Answer& AnswerCache::keep(Session& session, std::uint64_t request_id, Answer&& answer) {
  session.account.quota.charge_always(answer.head.size() + cached_answer_bytes);
  switch (answer.counts) {
    case Answer::Counts::as_answer: session.requests.cached_bytes += answer.head.size(); break;
    case Answer::Counts::as_parked: ++session.requests.cached_parked_count; break;
    case Answer::Counts::as_taken: ++session.requests.cached_taken_count; break;
  }
  Answers::node_type kept = spare_.take();
  if (!kept) kept = std::make_unique<Answers::Kept>();
  kept->request_id = request_id;
  kept->answer = std::move(answer);
  const Answer& there = session.requests.unacknowledged.insert(std::move(kept));
  ++count_;
  return there;
}

std::optional<OnAcknowledged> AnswerCache::forget(Session& session, std::uint64_t request_id) {
  Answers::node_type kept = session.requests.unacknowledged.take(request_id);
  if (!kept) return std::nullopt;
  const OnAcknowledged on_acknowledged = kept->answer.on_acknowledged;
  drop(session, std::move(kept));
  return on_acknowledged;
}

void AnswerCache::forget_all(Session& session) {
  session.requests.unacknowledged.drain(
      [&](Answers::node_type kept) { drop(session, std::move(kept)); });
}

bool AnswerCache::give_back(Session& session, std::uint64_t request_id) {
  Answer* const answer = session.requests.unacknowledged.find(request_id);
  if (answer == nullptr || answer->taken == nullptr) return false;
  const std::unique_ptr<Taken> taken = std::move(answer->taken);
  if (!taken->give_back(answer->tail)) return false;
  forget(session, request_id);
  return true;
}

void AnswerCache::drop(Session& session, Answers::node_type kept) {
  --count_;
  Answer& answer = kept->answer;
  session.account.quota.release(answer.head.size() + cached_answer_bytes);
  switch (answer.counts) {
    case Answer::Counts::as_answer: session.requests.cached_bytes -= answer.head.size(); break;
    case Answer::Counts::as_parked: --session.requests.cached_parked_count; break;
    case Answer::Counts::as_taken: --session.requests.cached_taken_count; break;
  }
  answer.tail.reset();
  answer.taken.reset();
  if (answer.head.capacity() > spare_head_bytes_max) answer.head = {};
  spare_.keep(std::move(kept));
}

}  // namespace muster::core
