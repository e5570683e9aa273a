#include "core/groups/rounds/round_answers.h"

#include <algorithm>

#include "core/session/failure.h"
#include "core/session/reply.h"
#include "wire/writer.h"

namespace muster::core {
namespace {

constexpr std::uint32_t members_per_step = 16;

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

/// What a decided round has failed with as `member` sees it; null: it is done.
const Failure* failure_for(const Round& round, const Member& member) {
  if (round.state == Round::State::failed) return &round.failure;
  for (const auto& [rank, mismatch] : round.differing) {
    if (rank == member.rank) return &mismatch;
  }
  return nullptr;
}

bool gets_value(const RoundCall& call, std::uint32_t rank) {
  switch (call.collective) {
    case wire::Collective::barrier: return false;
    case wire::Collective::broadcast:
    case wire::Collective::scatter: return rank != call.root;
    case wire::Collective::gather: return rank == call.root;
    case wire::Collective::all_gather: break;
  }
  return true;
}

}  // namespace

Answer RoundAnswers::outcome(const Round& round, const Member& member, Duration elapsed) const {
  Answer answer;
  if (const Failure* failure = failure_for(round, member)) {
    answer = answer_of_failure(*failure, elapsed, round.number);
  } else if (!gets_value(round.call, member.rank)) {
    answer.head =
        is_withheld(round, member) ? head_of_unconfirmed(unconfirmed(round)) : head_without_value();
  } else {
    const bool scatters = round.call.collective == wire::Collective::scatter;
    const Object* const object = scatters ? round.values.of(member.rank) : round.values.common();
    if (object == nullptr) {
      answer = answer_of_failure(make_failure(quota_, expired_error(round)), elapsed);
    } else {
      if (round.call.from_one()) answer.head = head_of_one_value(*object);
      answer.tail = object->value;
    }
  }
  answer.on_acknowledged = RoundPart{roster_.epoch, round.number, member.rank};
  return answer;
}

Answer RoundAnswers::outcome(const RoundWait& wait) const {
  if (wait.recovery != nullptr) {
    return recovered(wait.round, wait.member, wait.recovery->next_sequences);
  }
  return outcome(wait.round, wait.member, services_.now() - wait.parked.received);
}

Answer RoundAnswers::recovered(const Round& round, const Member& member,
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

/// Who is to be told of is looked for among all.
void RoundAnswers::spend_on_looking() const {
  services_.effects().spend(roster_.world_size() / members_per_step);
}

std::vector<RankRange> RoundAnswers::unconfirmed(const Round& round) const {
  spend_on_looking();
  Error ranks;
  for (const Member& member : roster_.members) {
    const bool missing = member.live() && member.rank != roster_.hosting_rank &&
                         member.acknowledged_round < round.number;
    if (missing) roster_.blame(ranks, member);
  }
  return std::move(ranks.rank_ranges);
}

std::vector<RankRange> RoundAnswers::missing(const Round& round) const {
  spend_on_looking();
  std::vector<RankRange> missing;
  for (const Member& member : roster_.members) {
    if (!member.live() || member.next_round > round.number) continue;
    // The ranks that only receive are not waited for.
    if (!round.call.from_one() || member.rank == round.call.root) add_to(missing, member.rank);
  }
  return missing;
}

void RoundAnswers::blame_for(std::uint64_t oldest, Error& error) const {
  spend_on_looking();
  for (const Member& member : roster_.members) {
    if (member.live() && member.next_round <= oldest) roster_.blame(error, member);
  }
  if (!error.rank_ranges.empty()) return;
  for (const Member& member : roster_.members) {
    if (member.live() && member.acknowledged_round < oldest) roster_.blame(error, member);
  }
}

Error RoundAnswers::error(ErrorCode code, const Round& round) const {
  Error error = roster_.error(code, "");
  error.round = round.number;
  return error;
}

Error RoundAnswers::expired_error(const Round& round) const {
  Error error =
      roster_.error(ErrorCode::expired, "the value was held for the group's data expiration of " +
                                            in_seconds(roster_.data_expiration) + " and is gone");
  error.round = round.number;
  if (round.call.from_one()) roster_.blame(error, roster_.members[round.call.root]);
  return error;
}

Error RoundAnswers::late_error(const Round& round, const Awaited& awaited, const Member& decider,
                               Duration timeout) const {
  Error error = this->error(ErrorCode::timed_out, round);
  error.decided_by_rank = static_cast<int>(decider.rank);
  error.decided_by_timeout = timeout;
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

Error RoundAnswers::mismatch_error(const Round& round, const Member& caller,
                                   std::string called) const {
  spend_on_looking();
  Error error = this->error(ErrorCode::collective_mismatch, round);
  const std::string others = text_of(round.call);
  const auto called_that = [&](const Member& member) {
    return member.live() && member.next_round > round.number &&
           std::ranges::find(round.passed_by, member.rank) == round.passed_by.end() &&
           std::ranges::find(round.differing, member.rank, &Round::Differing::rank) ==
               round.differing.end();
  };
  for (const Member& member : roster_.members) {
    if (&member == &caller) {
      RankReport report = report_of(services_, member);
      report.called = called;
      add_rank_in_full(error, std::move(report));
    } else if (called_that(member)) {
      add_rank(error, member.rank, [&] {
        RankReport report = report_of(services_, member);
        report.called = others;
        return report;
      });
    }
  }
  return error;
}

}  // namespace muster::core
