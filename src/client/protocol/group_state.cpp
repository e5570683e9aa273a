#include "client/protocol/group_state.h"

#include <algorithm>

namespace muster::client::protocol {
namespace {

Error refusal(ErrorCode code, std::string detail) {
  Error error;
  error.code = code;
  error.decided_by = "client";
  error.detail = std::move(detail);
  return error;
}

bool is_in_doubt(const Error* error, Fate fate) {
  return error != nullptr && (fate == Fate::in_doubt || error->code == ErrorCode::outcome_unknown);
}

/// Whether the server itself says that its count is another one.
bool corrects_count(const Error* error, Fate fate) {
  return error != nullptr && fate == Fate::answered && error->code == ErrorCode::sequence_gap;
}

/// Of an attempt to regroup: whether it was turned away, so that its number is still free.
bool is_turned_away(const Error& error) {
  switch (error.code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::unsupported:
    case ErrorCode::busy:
    case ErrorCode::resource_exhausted:
    case ErrorCode::permission_denied:
    case ErrorCode::internal: return true;
    default: return false;
  }
}

}  // namespace

GroupState::GroupState(wire::FormedReply formed) : formed_(std::move(formed)) {}

Result<std::uint64_t> GroupState::begin_round() {
  if (ended_) return *ended_;
  if (round_pending_) return refusal(ErrorCode::busy, "a collective of this handle is pending");
  if (regroup_pending_) return refusal(ErrorCode::busy, "a regroup of this handle is pending");
  if (interruption_pending_) {
    return refusal(ErrorCode::busy, "an interruption by this handle is pending");
  }
  if (round_in_doubt_ || regroup_in_doubt_ || interruption_in_doubt_) {
    Error error =
        refusal(ErrorCode::outcome_unknown, round_in_doubt_     ? "call recover() first"
                                            : regroup_in_doubt_ ? "call regroup() again first"
                                                                : "call interrupt() again first");
    error.epoch = formed_.epoch;
    error.round = next_round_;
    return error;
  }
  round_pending_ = true;
  return next_round_;
}

void GroupState::end_round(const Error* error, Fate fate) {
  round_pending_ = false;
  if (is_in_doubt(error, fate)) {
    round_in_doubt_ = true;
  } else if (corrects_count(error, fate) && error->expected != 0) {
    next_round_ = error->expected;
  } else if (error == nullptr || (fate == Fate::answered && error->round != 0)) {
    ++next_round_;  // a failure that was decided for all names its round
  }
  pass_interrupted();
}

Result<std::uint64_t> GroupState::begin_send(std::uint32_t destination, std::uint64_t tag) {
  if (ended_) return *ended_;
  Outgoing& stream = outgoing_[{destination, tag}];
  if (stream.in_doubt) {
    Error error = refusal(ErrorCode::outcome_unknown, "call recover() first");
    error.epoch = formed_.epoch;
    return error;
  }
  if (stream.failed) return refusal(ErrorCode::busy, "objects behind a failed one are pending");
  ++stream.pending;
  return stream.next++;
}

void GroupState::end_send(std::uint32_t destination, std::uint64_t tag, const Error* error,
                          Fate fate) {
  Outgoing& stream = outgoing_[{destination, tag}];
  --stream.pending;
  if (error == nullptr) {
    ++stream.taken;
    ++objects_sent_;
  } else if (is_in_doubt(error, fate)) {
    stream.in_doubt = true;
  } else {
    stream.failed = true;
    if (corrects_count(error, fate)) stream.taken = error->expected;
  }
  if (stream.pending > 0) return;
  if (stream.failed) stream.next = stream.taken;
  stream.failed = false;
}

Result<std::uint64_t> GroupState::begin_receive(std::uint32_t source, std::uint64_t tag) {
  if (ended_) return *ended_;
  Incoming& stream = incoming_[{source, tag}];
  if (stream.pending) {
    return refusal(ErrorCode::busy, "a receive of this source and tag is pending");
  }
  stream.pending = true;
  return stream.next;
}

void GroupState::end_receive(std::uint32_t source, std::uint64_t tag, const Error* error) {
  Incoming& stream = incoming_[{source, tag}];
  stream.pending = false;
  if (error == nullptr) ++objects_received_;
  if (error == nullptr || error->code == ErrorCode::expired) ++stream.next;
}

std::uint64_t GroupState::next_to_send(std::uint32_t destination, std::uint64_t tag) const {
  const auto found = outgoing_.find({destination, tag});
  return found == outgoing_.end() ? 0 : found->second.next;
}

std::uint64_t GroupState::next_to_receive(std::uint32_t source, std::uint64_t tag) const {
  const auto found = incoming_.find({source, tag});
  return found == incoming_.end() ? 0 : found->second.next;
}

Result<std::uint64_t> GroupState::begin_regroup() {
  const bool is_broken =
      ended_ && (ended_->code == ErrorCode::rank_lost || ended_->code == ErrorCode::rank_left);
  if (ended_ && !is_broken) return *ended_;
  if (regroup_pending_) return refusal(ErrorCode::busy, "a regroup of this handle is pending");
  if (round_pending_) return refusal(ErrorCode::busy, "a collective of this handle is pending");
  regroup_pending_ = true;
  return next_attempt_;
}

void GroupState::end_regroup(const Error* error, Fate fate) {
  regroup_pending_ = false;
  regroup_in_doubt_ = is_in_doubt(error, fate) || (regroup_in_doubt_ && fate == Fate::unsent);
  if (error != nullptr) {
    if (fate == Fate::answered && !is_turned_away(*error)) ++next_attempt_;
    return;
  }
  Error over = refusal(ErrorCode::stale_epoch, "this handle's members have formed a new epoch");
  over.epoch = formed_.epoch;
  ended_ = std::move(over);
}

Result<std::uint64_t> GroupState::begin_interruption() {
  if (ended_) return *ended_;
  if (interruption_pending_) {
    return refusal(ErrorCode::busy, "an interruption by this handle is pending");
  }
  interruption_pending_ = true;
  return next_interruption_;
}

void GroupState::end_interruption(std::uint64_t round, const Error* error, Fate fate) {
  interruption_pending_ = false;
  interruption_in_doubt_ =
      is_in_doubt(error, fate) || (interruption_in_doubt_ && fate == Fate::unsent);
  if (corrects_count(error, fate)) next_interruption_ = error->expected;
  if (error != nullptr) return;
  ++next_interruption_;
  interrupted_round_ = round;
  pass_interrupted();
}

/// A collective that has not ended has its number still.
void GroupState::pass_interrupted() {
  if (round_pending_ || round_in_doubt_) return;
  next_round_ = std::max(next_round_, interrupted_round_ + 1);
}

bool GroupState::in_doubt() const {
  if (round_in_doubt_) return true;
  for (const auto& [peer, stream] : outgoing_) {
    if (stream.in_doubt) return true;
  }
  return false;
}

wire::Recover GroupState::doubts() const {
  wire::Recover recover;
  recover.epoch = formed_.epoch;
  if (round_in_doubt_) recover.round = next_round_;
  for (const auto& [peer, stream] : outgoing_) {
    if (recover.streams.size() == wire::streams_per_recover_max) break;
    if (stream.in_doubt) recover.streams.push_back({peer.first, peer.second});
  }
  return recover;
}

void GroupState::resolve(const wire::Recover& asked, const wire::RecoverReply& answer) {
  if (round_in_doubt_ && asked.round == next_round_) {
    const bool was_decided =
        answer.state == wire::RoundState::done || answer.state == wire::RoundState::failed;
    if (was_decided) ++next_round_;
    round_in_doubt_ = !was_decided && answer.state != wire::RoundState::not_called;
    pass_interrupted();
  }
  const std::size_t count = std::min(asked.streams.size(), answer.next_sequences.size());
  for (std::size_t index = 0; index < count; ++index) {
    const wire::StreamName& name = asked.streams[index];
    Outgoing& stream = outgoing_[{name.destination, name.tag}];
    // Those on their way were sent before the question, so the answer knows of them.
    const std::uint64_t next = answer.next_sequences[index];
    objects_sent_ += next > stream.taken ? next - stream.taken : 0;
    stream.taken = stream.next = next;
    stream.in_doubt = stream.pending > 0;
  }
}

void GroupState::end(Error why) {
  if (!ended_) ended_ = std::move(why);
}

const Error* GroupState::ended() const { return ended_ ? &*ended_ : nullptr; }

std::uint64_t GroupState::pending_round() const { return round_pending_ ? next_round_ : 0; }

}  // namespace muster::client::protocol
