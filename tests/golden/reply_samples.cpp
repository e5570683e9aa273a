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

wire::MemberEntry member(std::uint32_t rank, wire::MemberState state) {
  return {rank, state, sample_process(), 250ms, {}};
}

wire::InspectGroupReply inspected() {
  wire::InspectGroupReply reply;
  reply.epoch = 7;
  reply.world_size = 2;
  reply.age = 60s;
  reply.members = {member(0, wire::MemberState::live), member(1, wire::MemberState::silent)};
  reply.candidates = {{member(1, wire::MemberState::away), 2, false, true, 3s, 7s}};
  reply.round = wire::RoundEntry{12, "barrier", 34s, {{0, 0}}, {{1, 1}}, 1024};
  reply.confirming = wire::RoundEntry{11, "barrier", 35s, {{0, 0}}, {{1, 1}}, 0};
  reply.regroup = wire::RegroupEntry{4, 3, 5s, {{0, 0}}, {{1, 3}}};
  reply.receivers = {{0, 1, 99, 3, 2s}};
  reply.failed = true;
  reply.failure_age = 40s;
  reply.failure_call = "broadcast root=1 codec=3";
  reply.failure = sample_error();
  return reply;
}

wire::InspectGroupReply forming() {
  wire::InspectGroupReply reply;
  reply.world_size = 3;
  reply.age = 10s;
  reply.members = {member(1, wire::MemberState::live)};
  reply.missing = {{0, 0}, {2, 2}};
  return reply;
}

wire::HistoryReply happened() {
  wire::HistoryReply reply;
  reply.records.push_back(
      {42, GroupEventKind::formed, 90s, 0s, 1, "tp0", 7, 4, std::nullopt, false, {}});
  wire::HistoryRecord lost{
      43, GroupEventKind::rank_lost, 30s, 1s, 2, "tp0", 7, 4, std::nullopt, true, {}};
  lost.error = Error{};
  lost.error->code = ErrorCode::rank_lost;
  lost.error->cause = LossCause::closed;
  lost.error->rank_ranges = {{2, 3}};
  reply.records.push_back(lost);
  wire::HistoryRecord refused{
      44, GroupEventKind::join_refused, 20s, 0s, 1, "tp0", 7, 4, sample_process(), true, {}};
  refused.error = Error{};
  refused.error->code = ErrorCode::rank_in_use;
  refused.error->detail = "rank 1 is there";
  reply.records.push_back(refused);
  reply.forgotten = 5;
  reply.known_for = 3600s;
  return reply;
}

wire::SettingsReply settings() {
  wire::SettingsReply reply;
  reply.settings.push_back({"memory-bytes-max",
                            SettingKind::bytes,
                            1U << 30,
                            1U << 20,
                            std::uint64_t{1} << 50,
                            123'456,
                            {}});
  reply.settings.push_back({"heartbeat", SettingKind::duration, 1'000'000, 10'000, 600'000'000,
                            std::nullopt, "clients are told it when they connect"});
  return reply;
}

/// With an optional field.
Sample regrouped_sample(const wire::MemberEntry& live, const wire::MemberEntry& lost) {
  Sample sample = reply_sample("reply_members_regrouped",
                               "Who is in the group, and which ranks they had before it regrouped.",
                               wire::MembersReply{{live, lost}, {2, std::nullopt}});
  sample.cut_may_decode = true;
  return sample;
}

/// With an optional field.
Sample sessions_with_keys_sample() {
  Sample sample = reply_sample("reply_sessions_keys", "Sessions of which one has proved a key.",
                               wire::SessionsReply{{{42, sample_process(), true, 300ms, 2, 1},
                                                    {43, sample_process(), false, 2s, 0, 0}},
                                                   {0x0123456789abcdef}});
  sample.cut_may_decode = true;
  return sample;
}

/// The same.
Sample cancel_take_sample() {
  Sample sample = reply_sample("reply_cancel_take", "What a take had taken was given back.",
                               wire::CancelTakeReply{true});
  sample.cut_may_decode = true;
  return sample;
}

/// The same.
Sample unheld_sample() {
  wire::InspectGroupReply reply = forming();
  reply.epoch = 7;
  reply.missing.clear();
  reply.unheld = {{1, 1}};
  Sample sample = reply_sample("reply_inspect_group_unheld",
                               "A member's process holds no handle of the group.", reply);
  sample.cut_may_decode = true;
  return sample;
}

}  // namespace

std::vector<Sample> reply_samples() {
  const wire::MemberEntry live{0, wire::MemberState::live, sample_process(), 200ms, "gpu 5"};
  const wire::MemberEntry lost{1, wire::MemberState::lost, {}, 16s, ""};
  return {
      reply_sample("reply_empty",
                   "Done: multi_set, touch, wait, leave, report_dead, a cancellation.",
                   wire::EmptyReply{}),
      cancel_take_sample(),
      reply_sample("reply_applied", "A set or compare_set took effect.",
                   wire::AppliedReply{true, std::nullopt}),
      reply_sample("reply_not_applied", "A compare_set found another value.",
                   wire::AppliedReply{false, "rank 2"}),
      reply_sample("reply_value", "What get and take found.", wire::ValueReply{"llama"}),
      reply_sample("reply_number",
                   "add: the sum; append: the length; remove, expire_data, drop_namespace, "
                   "end_session, drain: how many; send: the sequence.",
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
      regrouped_sample(live, lost),
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
      reply_sample("reply_sessions", "One page of the sessions.",
                   wire::SessionsReply{{{42, sample_process(), true, 300ms, 2, 1}}}),
      sessions_with_keys_sample(),
      reply_sample("reply_groups", "One page of the groups.",
                   wire::GroupsReply{{{"tp0", 7, 4, 4, 1, 12, 34s}}}),
      reply_sample("reply_inspect_group", "Who waits for whom in a group.", inspected()),
      reply_sample("reply_inspect_group_forming", "Who is there of a group that forms.", forming()),
      unheld_sample(),
      reply_sample(
          "reply_waiters", "One page of the requests that wait.",
          wire::WaitersReply{{{42, sample_process(), "get", "\"config/model\"", 12s, 288s}}}),
      reply_sample("reply_namespaces", "One page of the namespaces: the default one and another.",
                   wire::NameSpacesReply{{{"", 12, 3456, 1, 2, "", std::nullopt},
                                          {"job7", 1, 234, 0, 0, "10.0.0.7", 3600s}}}),
      reply_sample("reply_history", "What has happened to a group: it formed, and lost ranks.",
                   happened()),
      reply_sample("reply_settings",
                   "Settings: one that changes at run time, and one that does not.", settings()),
  };
}

}  // namespace muster::golden
