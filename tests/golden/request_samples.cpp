#include "builders.h"

namespace muster::golden {

using namespace std::chrono_literals;

std::vector<Sample> store_request_samples() {
  std::vector<Sample> samples;
  const auto add = [&samples](const char* name, const char* about, wire::RequestBody body) {
    samples.push_back(request_sample(name, about, std::move(body)));
  };
  add("request_set", "Sets a key for at most 60 s and only while this session lives.",
      wire::Set{"config/model", "llama", 60s, false, true});
  add("request_set_if_absent", "Sets a key for good, unless it is there.",
      wire::Set{"leader", "rank 0", std::nullopt, true, false});
  add("request_get", "Gets a key's value, waiting for it until the timeout.", wire::Get{"ready"});
  add("request_take", "Gets and removes a key, waiting for it.", wire::Take{"job"});
  add("request_add", "Adds to a decimal number.", wire::Add{"counter", -3});
  add("request_compare_set", "Replaces a value that is as expected.",
      wire::CompareSet{"leader", "rank 0", "rank 1", 30s});
  add("request_compare_set_absent", "Sets a key that must be absent.",
      wire::CompareSet{"leader", std::nullopt, "rank 1", std::nullopt});
  add("request_append", "Appends to a value.", wire::Append{"log", "line\n"});
  add("request_remove", "Removes keys.", wire::Remove{{"a", "bc"}});
  add("request_exists", "Asks which keys are there.", wire::Exists{{"a", "bc"}});
  add("request_wait", "Waits until all keys are there at one instant.", wire::Wait{{"a", "bc"}});
  add("request_multi_get", "Gets many values at once.", wire::MultiGet{{"a", "bc"}});
  add("request_multi_set", "Sets many keys, all or none.",
      wire::MultiSet{{{"a", "1"}, {"bc", "22"}}, 60s});
  add("request_list", "Asks for the second page of the keys that begin with \"config/\".",
      wire::List{wire::ListKind::keys, "config/", 17, 100});
  add("request_list_objects", "Asks for the payloads that groups hold.",
      wire::List{wire::ListKind::objects, "", 0, 0});
  add("request_touch", "Gives a key a new time to live.", wire::Touch{"lease", 10s});
  add("request_queue_push", "Puts an item into a key's queue.", wire::QueuePush{"jobs", "one"});
  add("request_queue_pop", "Takes the first item of a key's queue, waiting for one.",
      wire::QueuePop{"jobs"});
  add("request_queue_length", "Asks how many items a key's queue has.", wire::QueueLength{"jobs"});
  add("request_cancel_take", "Takes back a take, which waits as request 41.", wire::CancelTake{41});
  add("request_cancel_take_gives_back", "Gives back what request 41 has taken, or ends it.",
      wire::CancelTake{41, true});
  samples.back().cut_may_decode = true;
  add("request_status", "Asks for the server's state.", wire::Status{});
  return samples;
}

std::vector<Sample> group_request_samples() {
  std::vector<Sample> samples;
  const auto add = [&samples](const char* name, const char* about, wire::RequestBody body) {
    samples.push_back(request_sample(name, about, std::move(body)));
  };
  add("request_join", "Joins a group of 4 as rank 2.",
      wire::Join{"tp0", 2, 4, 3600s, true, "gpu 5"});
  add("request_join_tenants", "Joins a group that two other tenants may be in, too.",
      wire::Join{"tp0", 2, 4, 3600s, false, "", {"serve", "eval"}});
  samples.back().cut_may_decode = true;
  add("request_leave", "Leaves an epoch in order.", wire::Leave{7});
  add("request_regroup", "Asks for the next epoch with 4 ranks, or at least 3.",
      wire::Regroup{7, 1, 13, 4, 3});
  add("request_members", "Asks who is in the group.", wire::Members{7});
  add("request_report_dead", "Declares a process dead.",
      wire::ReportDead{sample_process_id(), "killed by the supervisor"});
  add("request_cancel_regroup", "Cancels a regroup for all ranks.", wire::CancelRegroup{7, 1});
  add("request_collective_barrier", "Comes to a barrier.",
      wire::CollectiveCall{7, 12, wire::Collective::barrier, 0, 0, {}});
  add("request_collective_all_gather", "Gives a rank's object to an all_gather.",
      wire::CollectiveCall{7, 13, wire::Collective::all_gather, 0, 1, {"object"}});
  add("request_collective_scatter", "The root of a scatter gives one object per rank.",
      wire::CollectiveCall{7, 14, wire::Collective::scatter, 1, 2, {"for 0", "", "for 2"}});
  add("request_cancel_round", "Cancels a round for all ranks.", wire::CancelRound{7, 12});
  add("request_interrupt", "Ends what the others wait for.",
      wire::Interrupt{7, 1, "restores group 'a'"});
  add("request_send", "Sends the fourth object of a stream.", wire::Send{7, 1, 99, 3, 1, "object"});
  add("request_receive", "Receives the fourth object of a stream.", wire::Receive{7, 0, 99, 3, 1});
  add("request_expire_data", "Drops objects older than a minute.", wire::ExpireData{7, 60s});
  add("request_recover", "Asks what became of a round and of two streams.",
      wire::Recover{7, 12, {{1, 99}, {2, 0}}});
  add("request_sessions", "Asks for the sessions behind number 41.", wire::Sessions{41});
  add("request_groups", "Asks for the groups behind \"tp0\".", wire::Groups{"tp0"});
  add("request_inspect_group", "Asks who waits for whom in a group.", wire::InspectGroup{"tp0"});
  add("request_waiters", "Asks what the sessions behind number 41 wait for.", wire::Waiters{41});
  add("request_namespaces", "Asks for the namespaces behind \"job7\".", wire::NameSpaces{"job7"});
  add("request_namespaces_all", "Asks for the namespaces from the first one on.",
      wire::NameSpaces{std::nullopt});
  add("request_history", "Asks what has happened to a group behind number 41.",
      wire::History{"tp0", 41});
  add("request_whoami", "Asks whom the server takes this client for.", wire::WhoAmI{});
  add("request_drop_namespace", "Removes a namespace with its keys.", wire::DropNameSpace{"job7"});
  add("request_get_settings", "Asks for one setting.", wire::GetSettings{"memory-bytes-max"});
  add("request_set_setting", "Changes a setting.",
      wire::SetSetting{"memory-bytes-max", std::uint64_t{2} << 30});
  add("request_end_session", "Ends one session.", wire::EndSession{42, {}, "it hangs"});
  add("request_end_session_process", "Ends all sessions of a process.",
      wire::EndSession{0, sample_process_id(), "it hangs"});
  add("request_drain", "Lets nobody in any more, and waits for ten minutes until all are gone.",
      wire::Drain{false, 600s, "a newer version"});
  add("request_drain_cancel", "Lets newcomers in again.", wire::Drain{true, std::nullopt, ""});
  return samples;
}

}  // namespace muster::golden
