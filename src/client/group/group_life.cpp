#include <algorithm>
#include <limits>
#include <optional>

#include "client/decode.h"
#include "client/group/group_call.h"
#include "wire/forms/public_form.h"

// Joining, the next epoch, leaving, and what became of calls without an answer.

namespace muster::client {
namespace {

using protocol::Verdict;
using Slot = std::shared_ptr<std::optional<Result<std::shared_ptr<Group>>>>;

/// Makes the group as soon as the reply is there, before any event can follow it. The reply is
/// received when this process has a handle of the epoch.
void form(const Slot& slot, const std::shared_ptr<Link>& link, const std::string& name,
          const GroupOptions& options, const Outcome& outcome) {
  const auto formed = wire::decode_body<wire::ReplyTo<wire::Join>>(*outcome.reply);
  const bool makes_sense =
      formed && formed->world_size > 0 && formed->rank < formed->world_size &&
      formed->world_size <= static_cast<std::uint32_t>(std::numeric_limits<int>::max());
  if (makes_sense) *slot = Group::create(link, name, options, *formed);
  link->conclude(outcome.call, makes_sense ? Verdict::accepted : Verdict::refused);
}

auto taken_from(Slot slot) {
  return [slot = std::move(slot)](const std::string&) -> Result<std::shared_ptr<Group>> {
    if (*slot) return *std::move(*slot);
    return failure(ErrorCode::protocol_error, "the server's answer does not describe a group");
  };
}

std::optional<Error> refusal_to_join(std::string_view name, int rank, int world_size,
                                     const GroupOptions& options) {
  if (name.empty()) return invalid_argument("name: at least one byte");
  if (world_size < 1) return invalid_argument("world_size: at least 1");
  if (rank < 0 || rank >= world_size) {
    return invalid_argument("rank " + std::to_string(rank) + ": ranks are 0 to " +
                            std::to_string(world_size - 1));
  }
  if (options.timeout <= Duration::zero()) return invalid_argument("timeout: above zero");
  if (options.data_expiration <= Duration::zero()) {
    return invalid_argument("data_expiration: above zero");
  }
  return std::nullopt;
}

/// What forms the group of a join.
struct Joining {
  std::shared_ptr<Link> link;
  std::string name;
  GroupOptions options;
};

}  // namespace

PreparedCall<std::shared_ptr<Group>> Group::join_call(std::shared_ptr<Link> link,
                                                      std::string_view name, int rank,
                                                      int world_size, const GroupOptions& options) {
  PreparedCall<std::shared_ptr<Group>> made;
  made.context = {"create", std::make_shared<const std::string>(name), 0, 0};
  made.timeout = options.timeout;
  made.body = wire::Join{name,
                         static_cast<std::uint32_t>(rank),
                         static_cast<std::uint32_t>(world_size),
                         options.data_expiration,
                         options.standby,
                         options.info,
                         {options.other_tenants.begin(), options.other_tenants.end()}};
  made.refused = refusal_to_join(name, rank, world_size, options);
  if (!made.refused) made.refused = refusal_of(made.body, link->limits());
  const auto slot = std::make_shared<Slot::element_type>();
  const auto joining = std::make_shared<const Joining>(Joining{link, std::string(name), options});
  made.ticket.receipt = protocol::Receipt::by_caller;
  made.ticket.settle = [slot, joining](const Outcome& outcome) {
    if (outcome.reply) form(slot, joining->link, joining->name, joining->options, outcome);
  };
  made.decode = taken_from(slot);
  return made;
}

PreparedCall<std::shared_ptr<Group>> Group::regroup_call(const RegroupOptions& options,
                                                         Duration timeout) {
  auto made = call<std::shared_ptr<Group>>("regroup", timeout);
  if (!made.refused && made.timeout == Duration::zero()) {
    made.refused = invalid_argument("timeout: above zero, others have to come");
  }
  if (!made.refused && (options.new_size < 0 || options.min_size < 0)) {
    made.refused = invalid_argument("new_size, min_size: not negative");
  }
  if (!made.refused && options.everyone && options.new_size != 0) {
    made.refused = invalid_argument("new_size: 0 with everyone, whose number gives the size");
  }
  wire::Regroup body;
  body.epoch = epoch();
  body.new_size =
      options.everyone ? wire::Regroup::everyone : static_cast<std::uint32_t>(options.new_size);
  body.min_size = static_cast<std::uint32_t>(options.min_size);
  made.body = body;
  const auto slot = std::make_shared<Slot::element_type>();
  made.decode = taken_from(slot);
  if (!check(made)) return made;
  made.ticket.receipt = protocol::Receipt::by_caller;
  made.ticket.settle = [self = shared_from_this(), slot](const Outcome& outcome) {
    self->numbers_.with_state(
        [&](protocol::GroupState& state) { state.end_regroup(error_of(outcome), outcome.fate); });
    if (!outcome.reply) return;
    if (self->is_gone_.exchange(true)) {  // it leaves the next epoch, too
      *slot = failure(ErrorCode::closed, "the group's handle is gone");
      return self->link_->conclude(outcome.call, Verdict::refused);
    }
    form(slot, self->link_, self->name(), self->options_, outcome);
    self->losses_.end(failure(ErrorCode::stale_epoch, "the group has regrouped"));
  };
  auto& numbered = std::get<wire::Regroup>(made.body);
  const auto attempt = numbers_.give(made, [&numbered](protocol::GroupState& state) {
    numbered.next_round = state.rounds() + 1;
    return state.begin_regroup();
  });
  if (!attempt) return made;
  numbered.attempt = *attempt;
  made.ticket.cancellation = wire::CancelRegroup{epoch(), *attempt};
  return made;
}

PreparedCall<void> Group::interrupt_call(std::string_view reason, Duration timeout) {
  auto made = call<void>("interrupt", timeout);
  wire::Interrupt body;
  body.epoch = epoch();
  body.reason = reason;
  made.body = body;
  made.decode = [](const std::string&) { return Result<void>(); };
  if (!check(made)) return made;
  made.ticket.settle = [self = shared_from_this()](const Outcome& outcome) {
    std::uint64_t round = 0;
    if (outcome.reply) {
      const auto reply = wire::decode_body<wire::NumberReply>(*outcome.reply);
      if (reply) round = static_cast<std::uint64_t>(reply->number);
    }
    self->numbers_.with_state([&](protocol::GroupState& state) {
      state.end_interruption(round, error_of(outcome), outcome.fate);
    });
  };
  const auto number =
      numbers_.give(made, [](protocol::GroupState& state) { return state.begin_interruption(); });
  if (number) std::get<wire::Interrupt>(made.body).number = *number;
  return made;
}

PreparedCall<void> Group::leave_call(Duration timeout) {
  auto made = call<void>("leave", timeout);
  made.body = wire::Leave{epoch()};
  made.decode = decoder<void, wire::Leave>(read_nothing);
  if (!check(made)) return made;
  refuse_if_ended(made);
  made.ticket.settle = [self = shared_from_this()](const Outcome& outcome) {
    if (outcome.reply) self->end(failure(ErrorCode::closed, "this rank has left the group"));
  };
  return made;
}

PreparedCall<std::vector<MemberInfo>> Group::members_call(Duration timeout) {
  using Members = std::vector<MemberInfo>;
  auto made = call<Members>("members", timeout);
  made.body = wire::Members{epoch()};
  made.decode = decoder<Members, wire::Members>([](const wire::MembersReply& reply, const auto&) {
    Members members;
    members.reserve(reply.members.size());
    for (const wire::MemberEntry& entry : reply.members)
      members.push_back(wire::public_form(entry));
    const std::size_t count = std::min(members.size(), reply.previous_ranks.size());
    for (std::size_t index = 0; index < count; ++index) {
      const auto& rank = reply.previous_ranks[index];
      if (rank) members[index].previous_rank = static_cast<int>(*rank);
    }
    return members;
  });
  if (check(made)) refuse_if_ended(made);
  return made;
}

PreparedCall<RecoveredRound> Group::recover_call(Duration timeout) {
  auto made = call<RecoveredRound>("recover", timeout);
  made.is_counted = true;
  const auto asked = numbers_.with_state([](const protocol::GroupState& state) {
    return std::make_shared<const wire::Recover>(state.doubts());
  });
  made.context.round = asked->round;
  made.body = *asked;
  made.decode = [round = asked->round](const std::string& body) -> Result<RecoveredRound> {
    auto reply = wire::decode_body<wire::ReplyTo<wire::Recover>>(body);
    if (!reply) return std::move(reply).error();
    RecoveredRound recovered;
    recovered.round = round;
    recovered.called =
        reply->state == wire::RoundState::done || reply->state == wire::RoundState::failed;
    recovered.error = std::move(reply->error);
    recovered.values.assign(reply->round.values.begin(), reply->round.values.end());
    return recovered;
  };
  if (!check(made)) return made;
  refuse_if_ended(made);
  made.ticket.settle = [self = shared_from_this(), asked](const Outcome& outcome) {
    if (!outcome.reply) return;
    const auto answer = wire::decode_body<wire::ReplyTo<wire::Recover>>(*outcome.reply);
    if (!answer) return;
    self->numbers_.with_state([&](protocol::GroupState& state) { state.resolve(*asked, *answer); });
  };
  return made;
}

}  // namespace muster::client
