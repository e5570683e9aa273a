#include "bytes.h"
#include "why.h"

// The output of `why` and `waiters` for programs.

namespace musterctl {
namespace {

using muster::GroupReport;
using muster::MemberInfo;
using muster::MemberState;

std::string_view name_of(MemberState state) {
  switch (state) {
    case MemberState::live: return "live";
    case MemberState::silent: return "silent";
    case MemberState::lost: return "lost";
    case MemberState::left: return "left";
    case MemberState::candidate: return "candidate";
    case MemberState::away: return "away";
  }
  return "unknown";
}

Json member_json(const MemberInfo& member) {
  Json json = {{"rank", member.rank}, {"state", name_of(member.state)}};
  add_process(json, member.process);
  json["silence_s"] = seconds_of(member.silence);
  return json;
}

Json round_json(const muster::WaitingRound& round) {
  Json json = {{"number", round.number},
               {"call", round.call},
               {"age_s", seconds_of(round.age)},
               {"called", json_of(round.called)},
               {"missing", json_of(round.missing)}};
  if (round.older_rounds != 0) json["older_rounds"] = round.older_rounds;
  return json;
}

Json candidate_json(const muster::WaitingCandidate& candidate) {
  Json json = member_json(candidate.member);
  json["world_size"] = candidate.world_size;
  json["standby"] = candidate.standby;
  json["waits_for"] = candidate.waits_for_holder ? "holder" : "regroup";
  json["age_s"] = seconds_of(candidate.age);
  json["left_s"] = seconds_of(candidate.left);
  return json;
}

}  // namespace

Json json_of(const GroupReport& report, muster::Duration hung_for) {
  Json json;
  add_bytes(json, "group", report.name);
  json["state"] = report.epoch == 0 ? "forming" : "formed";
  json["waits"] = has_waiters(report);
  json["hangs"] = hangs(report, hung_for);
  if (const auto held_up = held_up_for(report)) json["held_up_s"] = seconds_of(*held_up);
  json["epoch"] = report.epoch;
  json["world_size"] = report.world_size;
  json["age_s"] = seconds_of(report.age);
  Json members = Json::array();
  for (const MemberInfo& member : report.members) members.push_back(member_json(member));
  json["members"] = std::move(members);
  json["missing"] = json_of(report.missing);
  Json candidates = Json::array();
  for (const muster::WaitingCandidate& candidate : report.candidates) {
    candidates.push_back(candidate_json(candidate));
  }
  json["candidates"] = std::move(candidates);
  if (report.round) json["round"] = round_json(*report.round);
  if (report.confirming) json["confirming"] = round_json(*report.confirming);
  if (report.regroup) {
    json["regroup"] = {
        {"new_size", report.regroup->new_size},      {"everyone", report.regroup->everyone},
        {"min_size", report.regroup->min_size},      {"age_s", seconds_of(report.regroup->age)},
        {"called", json_of(report.regroup->called)}, {"missing", json_of(report.regroup->missing)}};
  }
  Json receivers = Json::array();
  for (const muster::WaitingReceiver& receiver : report.receivers) {
    receivers.push_back({{"rank", receiver.rank},
                         {"source", receiver.source},
                         {"tag", receiver.tag},
                         {"sequence", receiver.sequence},
                         {"age_s", seconds_of(receiver.age)}});
  }
  json["receivers"] = std::move(receivers);
  if (report.failure) {
    json["last_failure"] = json_of(*report.failure);
    json["last_failure"]["call"] = report.failure_call;
    json["last_failure"]["age_s"] = seconds_of(report.failure_age);
  }
  json["explanation"] = explain(report, hung_for);
  return json;
}

Json json_of(const muster::WaiterInfo& waiter) {
  Json json = {{"session", waiter.session}};
  add_process(json, waiter.process);
  json["operation"] = waiter.operation;
  add_bytes(json, "target", waiter.target);
  json["age_s"] = seconds_of(waiter.age);
  json["left_s"] = seconds_of(waiter.left);
  return json;
}

}  // namespace musterctl
