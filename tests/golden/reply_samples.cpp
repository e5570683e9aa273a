#include "builders.h"

namespace muster::golden {

using namespace std::chrono_literals;

namespace {

wire::RecoverReply recovered(wire::RoundState state) {
  wire::RecoverReply reply;
  reply.state = state;
  reply.next_sequences = {4, 0};
  if (state == wire::RoundState::failed) reply.error = sample_error();
  if (state == wire::RoundState::done) reply.round.values = {"from 0", "from 1"};
  return reply;
}

}  // namespace

std::vector<Sample> reply_samples() {
  const wire::MemberEntry live{0, wire::MemberState::live, sample_process(), 200ms, "gpu 5"};
  const wire::MemberEntry lost{1, wire::MemberState::lost, {}, 16s, ""};
  return {
      reply_sample("reply_empty",
                   "Done: multi_set, touch, wait, leave, report_dead, a cancellation.",
                   wire::EmptyReply{}),
      reply_sample("reply_applied", "A set or compare_set took effect.",
                   wire::AppliedReply{true, std::nullopt}),
      reply_sample("reply_not_applied", "A compare_set found another value.",
                   wire::AppliedReply{false, "rank 2"}),
      reply_sample("reply_value", "What get and take found.", wire::ValueReply{"llama"}),
      reply_sample("reply_number",
                   "add: the sum; append: the length; remove, expire_data: how many; "
                   "send: the sequence.",
                   wire::NumberReply{-3}),
      reply_sample("reply_presence", "exists: one byte per key.",
                   wire::PresenceReply{{true, false}}),
      reply_sample("reply_values", "multi_get: one optional value per key.",
                   wire::ValuesReply{{"1", std::nullopt, ""}}),
      reply_sample(
          "reply_list", "One page of a list.",
          wire::ListReply{{{"config/model", 5, 59s, true}, {"config/x", 1, {}, false}}, 17}),
      reply_sample("reply_formed", "join, regroup: the epoch that has formed.",
                   wire::FormedReply{7, 2, 4, 0, 1, 3600s}),
      reply_sample("reply_members", "Who is in the group.", wire::MembersReply{{live, lost}}),
      reply_sample("reply_round_barrier",
                   "A barrier is decided; for the hosting rank: who has not confirmed.",
                   wire::RoundReply{{{3, 3}, {9, 12}}, {}}),
      reply_sample("reply_round_values", "An all_gather is decided: one object per rank.",
                   wire::RoundReply{{}, {"from 0", "", "from 2"}}),
      reply_sample("reply_receive", "An object of a stream.", wire::ReceiveReply{3, 1, "object"}),
      reply_sample("reply_recover_not_called", "The round in doubt never reached the server.",
                   recovered(wire::RoundState::not_called)),
      reply_sample("reply_recover_done", "The round in doubt was decided well.",
                   recovered(wire::RoundState::done)),
      reply_sample("reply_recover_failed", "The round in doubt has failed.",
                   recovered(wire::RoundState::failed)),
      reply_sample("reply_status", "Names and values for people.",
                   wire::StatusReply{{{"keys", "12"}, {"sessions", "3"}}}),
  };
}

}  // namespace muster::golden
