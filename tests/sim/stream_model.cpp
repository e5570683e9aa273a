#include <algorithm>

#include "group_model.h"
#include "oracle.h"

// The streams of the model: each object once, in its order, and no younger than it may be.

namespace muster::sim {

void GroupModel::send_begins(const Stream& stream, std::uint64_t sequence,
                             const std::string& value) {
  streams_[stream].attempts[sequence].push_back({value, oracle_.now(), {}, false});
}

void GroupModel::sent(const Stream& stream, std::uint64_t sequence) {
  Objects& objects = streams_[stream];
  objects.sent_count = std::max(objects.sent_count, sequence + 1);
  auto& attempts = objects.attempts[sequence];
  if (!attempts.empty()) attempts.back().ended = oracle_.now();
}

void GroupModel::send_refused(const Stream& stream, std::uint64_t sequence) {
  auto& attempts = streams_[stream].attempts[sequence];
  if (!attempts.empty()) attempts.back().is_refused = true;
}

void GroupModel::received(const Stream& stream, std::uint64_t sequence, std::string_view value,
                          Instant asked) {
  Objects& objects = streams_[stream];
  if (sequence != objects.next_received) {
    problem(stream.epoch, "object " + std::to_string(sequence) + " was received where " +
                              std::to_string(objects.next_received) + " was due");
  }
  objects.next_received = sequence + 1;
  const auto found = objects.attempts.find(sequence);
  if (found == objects.attempts.end()) {
    return problem(stream.epoch, "an object was received that nobody sent");
  }
  const auto& attempts = found->second;
  const bool is_right = std::any_of(attempts.begin(), attempts.end(), [&](const auto& attempt) {
    return attempt.value == value && !attempt.is_refused;
  });
  if (!is_right) problem(stream.epoch, "another object was received: " + std::string(value));
  const Attempt& last = attempts.back();
  if (!last.ended) return;
  for (const Expiry& expiry : expiries_[stream.epoch]) {
    const bool is_over = expiry.source == stream.source && expiry.ended && *expiry.ended < asked;
    if (!is_over || expiry.begun - *last.ended <= oracle_.longer(expiry.older_than)) continue;
    problem(stream.epoch, "an object was received that its source had let expire");
  }
}

void GroupModel::expired(const Stream& stream, std::uint64_t sequence, Duration expiration) {
  Objects& objects = streams_[stream];
  if (sequence != objects.next_received) {
    problem(stream.epoch, "another object is said to have expired than the one that is due");
  }
  objects.next_received = sequence + 1;
  const auto& attempts = objects.attempts[sequence];
  if (attempts.empty()) return problem(stream.epoch, "what nobody sent is said to have expired");
  const Instant begun = attempts.front().begun;
  const Duration age = oracle_.now() - begun;
  if (expiration != Duration::zero() && age >= oracle_.shorter(expiration)) return;
  for (const Expiry& expiry : expiries_[stream.epoch]) {
    const Instant ended = expiry.ended.value_or(oracle_.now());
    const bool is_old = ended - begun >= oracle_.shorter(expiry.older_than);
    if (expiry.source == stream.source && is_old) return;
  }
  problem(stream.epoch, "object " + std::to_string(sequence) + " has expired before its time");
}

std::size_t GroupModel::expire_begins(const Place& place, Duration older_than) {
  auto& expiries = expiries_[place.epoch];
  expiries.push_back({place.rank, older_than, oracle_.now(), {}});
  return expiries.size() - 1;
}

void GroupModel::expire_ended(const Place& place, std::size_t number) {
  expiries_[place.epoch][number].ended = oracle_.now();
}

std::uint64_t GroupModel::sent_count(const Stream& stream) const {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? 0 : found->second.sent_count;
}

}  // namespace muster::sim
