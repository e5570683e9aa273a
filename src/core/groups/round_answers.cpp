#include <algorithm>

#include "core/groups/round.h"
#include "core/session/failure.h"
#include "core/session/reply.h"
#include "wire/writer.h"

// What the ranks of a round are told.

namespace muster::core {

std::string text_of(const RoundCall& call) {
  std::string text(wire::name_of(call.collective));
  const bool rooted = call.collective != wire::Collective::barrier &&
                      call.collective != wire::Collective::all_gather;
  if (rooted) text += " root=" + std::to_string(call.root);
  if (call.collective != wire::Collective::barrier) text += " codec=" + std::to_string(call.codec);
  return text;
}

namespace {

/// Most ranks of a round get this reply: it is encoded once.
const std::string& head_without_value() {
  static const std::string head = answer_of(wire::RoundReply{}).head;
  return head;
}

std::string head_of_unconfirmed(std::vector<RankRange> ranks) {
  wire::RoundReply reply;
  reply.unconfirmed = std::move(ranks);
  return std::move(answer_of(reply).head);
}

/// What comes before the bytes of a RoundReply's one value.
std::string head_of_one_value(const Object& object) {
  std::string head;
  wire::Writer writer(head);
  writer.u32(0);  // unconfirmed ranks
  writer.u32(1);  // values
  writer.u32(static_cast<std::uint32_t>(object.value->view().size()));
  return head;
}

}  // namespace

void Rounds::answer(RoundWait& wait) {
  Answer answer = wait.recovery != nullptr
                      ? recovered(wait.round, wait.member, wait.recovery->next_sequences)
                      : outcome(wait.round, wait.member, host_.now() - wait.parked.received);
  host_.answer(wait.parked, std::move(answer));
}

/// What a decided round has failed with as `member` sees it; null: it is done.
const Failure* Rounds::failure_for(const Round& round, const Member& member) const {
  if (round.state == Round::State::failed) return &round.failure;
  for (const auto& [rank, mismatch] : round.differing) {
    if (rank == member.rank) return &mismatch;
  }
  return nullptr;
}

/// What a decided round means for one member.
Answer Rounds::outcome(const Round& round, const Member& member, Duration elapsed) const {
  const bool is_root = member.rank == round.call.root;
  Answer answer;
  const Object* object = nullptr;
  bool gets_value = true;
  if (const Failure* failure = failure_for(round, member)) {
    answer = answer_of_failure(*failure, elapsed, round.number);
    gets_value = false;
  } else {
    switch (round.call.collective) {
      case wire::Collective::barrier: gets_value = false; break;
      case wire::Collective::broadcast:
        gets_value = !is_root;
        object = round.body;
        break;
      case wire::Collective::scatter:
        gets_value = !is_root;
        object = round.values[member.rank];
        break;
      case wire::Collective::gather: gets_value = is_root; [[fallthrough]];
      case wire::Collective::all_gather: object = round.body; break;
    }
    if (!gets_value) {
      answer.head =
          withheld(round, member) ? head_of_unconfirmed(unconfirmed(round)) : head_without_value();
    } else if (object != nullptr) {
      if (from_one(round.call.collective)) answer.head = head_of_one_value(*object);
      answer.tail = object->value;
    } else {
      answer = answer_of_failure(make_failure(quota_, expired_error(round)), elapsed);
    }
  }
  answer.on_acknowledged = RoundPart{roster_.epoch, round.number, member.rank};
  return answer;
}

Answer Rounds::recovered(const Round& round, const Member& member,
                         const std::vector<std::uint64_t>& next_sequences) const {
  Answer told = outcome(round, member, {});
  Answer answer;
  answer.on_acknowledged = told.on_acknowledged;
  if (told.code != 0) {
    wire::RecoverReply reply;
    reply.state = wire::RoundState::failed;
    reply.next_sequences = next_sequences;
    reply.error = wire::decode_error(told.code, told.head + std::string(told.tail->view()));
    wire::append_body(answer.head, reply);
    return answer;
  }
  // A RecoverReply whose last field, the round, is the body that the call would have got.
  wire::Writer writer(answer.head);
  writer.u8(static_cast<std::uint8_t>(wire::RoundState::done));
  writer.u32(static_cast<std::uint32_t>(next_sequences.size()));
  for (const std::uint64_t sequence : next_sequences) writer.u64(sequence);
  writer.raw(told.head);
  answer.tail = told.tail;
  return answer;
}

void Rounds::recover(const RequestContext& context, Member& member, std::uint64_t number,
                     std::vector<std::uint64_t> next_sequences) {
  wire::RecoverReply reply;
  reply.next_sequences = next_sequences;
  Round* round = find(number);
  const bool called = number != 0 && number < member.next_round;
  if (called && round != nullptr && round->state != Round::State::open) {
    return host_.answer(context, recovered(*round, member, next_sequences));
  }
  if (called && round != nullptr) {
    HeldBytes record;
    const std::uint64_t bytes = next_sequences.size() * sizeof(std::uint64_t);
    if (!record.add(quota_, bytes)) {
      return host_.fail(context, memory_exhausted(host_, quota_, bytes));
    }
    Parked* parked = host_.park(context);
    if (parked == nullptr) return;
    auto wait = std::make_unique<RoundWait>(*round, member, *parked);
    wait->recovery =
        std::make_unique<Recovery>(Recovery{std::move(next_sequences), std::move(record)});
    round->waits.append(wait->link);
    parked->wait = std::move(wait);
    return;
  }
  if (!called) {
    reply.state = number == 0 ? wire::RoundState::none : wire::RoundState::not_called;
  } else if (roster_.broken()) {
    reply.state = wire::RoundState::failed;
    reply.error = roster_.loss_error();
    reply.error->round = number;
  } else {
    Error error = roster_.error(ErrorCode::sequence_gap, "the round's outcome was acknowledged");
    error.expected = member.next_round;
    error.actual = number;
    return host_.fail(context, std::move(error));
  }
  host_.answer(context, answer_of(reply));
}

Error Rounds::round_error(ErrorCode code, const Round& round) const {
  Error error = roster_.error(code, "");
  error.round = round.number;
  return error;
}

Error Rounds::expired_error(const Round& round) const {
  Error error =
      roster_.error(ErrorCode::expired, "the value was held for the group's data expiration of " +
                                            in_seconds(roster_.data_expiration) + " and is gone");
  error.round = round.number;
  if (from_one(round.call.collective)) roster_.blame(error, roster_.members[round.call.root]);
  return error;
}

std::vector<RankRange> Rounds::missing(const Round& round) const {
  std::vector<RankRange> missing;
  for (const Member& member : roster_.members) {
    if (!member.live() || member.next_round > round.number) continue;
    // The ranks that only receive are not waited for.
    if (!from_one(round.call.collective) || member.rank == round.call.root) {
      add_to(missing, member.rank);
    }
  }
  return missing;
}

Rounds::Awaited Rounds::awaited(const Round& round) const {
  if (round.state == Round::State::done) return {unconfirmed(round), 0};
  Awaited awaited{missing(round), 0};
  if (!awaited.ranks.empty() || admitted(round)) return awaited;
  Error oldest;
  blame_for_oldest(oldest);
  return {std::move(oldest.rank_ranges),
          static_cast<std::uint32_t>(round.number - open_.front()->number)};
}

/// The deadline of `decider`, who had given `timeout`, has passed.
Error Rounds::missing_error(const Round& round, const Member& decider, Duration timeout) const {
  Error error = round_error(ErrorCode::timed_out, round);
  error.decided_by_rank = static_cast<int>(decider.rank);
  error.decided_by_timeout = timeout;
  const Awaited awaited = this->awaited(round);
  for (const RankRange range : awaited.ranks) {
    for (int rank = range.first; rank <= range.last; ++rank) {
      roster_.blame(error, roster_.members[static_cast<std::size_t>(rank)]);
    }
  }
  if (awaited.older_rounds != 0) {
    error.detail = "all came, but open_rounds_max older rounds wait for these ranks";
  }
  return error;
}

/// Names those for whom the oldest round is kept: who has not called it, or else not acknowledged.
void Rounds::blame_for_oldest(Error& error) const {
  const std::uint64_t oldest = open_.front()->number;
  for (const Member& member : roster_.members) {
    if (member.live() && member.next_round <= oldest) roster_.blame(error, member);
  }
  if (!error.rank_ranges.empty()) return;
  for (const Member& member : roster_.members) {
    if (member.live() && member.acknowledged_round < oldest) roster_.blame(error, member);
  }
}

/// `caller` has called something else than the ranks before it.
Error Rounds::mismatch_error(const Round& round, const Member& caller, std::string called) const {
  Error error = round_error(ErrorCode::collective_mismatch, round);
  const std::string others = text_of(round.call);
  const auto called_that = [&](const Member& member) {
    return member.live() && member.next_round > round.number &&
           std::ranges::find(round.differing, member.rank, &Round::Differing::rank) ==
               round.differing.end();
  };
  for (const Member& member : roster_.members) {
    if (&member == &caller) {
      RankReport report = report_of(host_, member);
      report.called = called;
      add_rank_in_full(error, std::move(report));
    } else if (called_that(member)) {
      add_rank(error, member.rank, [&] {
        RankReport report = report_of(host_, member);
        report.called = others;
        return report;
      });
    }
  }
  return error;
}

std::vector<RankRange> Rounds::unconfirmed(const Round& round) const {
  Error ranks;
  for (const Member& member : roster_.members) {
    const bool missing = member.live() && member.rank != roster_.hosting_rank &&
                         member.acknowledged_round < round.number;
    if (missing) roster_.blame(ranks, member);
  }
  return std::move(ranks.rank_ranges);
}

/// A RoundReply with the values of all ranks.
std::string Rounds::gathered_body(const Round& round) const {
  wire::RoundReply reply;
  reply.values.reserve(round.values.size());
  for (const Object* value : round.values) reply.values.push_back(value->value->view());
  std::string body;
  body.reserve(8 + round.value_bytes + 4 * reply.values.size());
  wire::append_body(body, reply);
  return body;
}

}  // namespace muster::core
