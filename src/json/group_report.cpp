#include "json/documents.h"
#include "json/fields.h"
#include "json/why.h"
#include "muster/inspect.h"

// A group's report: who is in it, who is missing, who waits for whom.

namespace muster::json {
namespace {

Json round_json(const WaitingRound& round) {
  Json json = {{"number", round.number},
               {"call", round.call},
               {"age_s", seconds_of(round.age)},
               {"called", json_of(round.called)},
               {"missing", json_of(round.missing)}};
  if (round.older_rounds != 0) json["older_rounds"] = round.older_rounds;
  return json;
}

Json candidate_json(const WaitingCandidate& candidate) {
  Json json = json_of(candidate.member);
  json["world_size"] = candidate.world_size;
  json["standby"] = candidate.standby;
  json["waits_for"] = candidate.waits_for_holder ? "holder" : "regroup";
  json["age_s"] = seconds_of(candidate.age);
  json["left_s"] = seconds_of(candidate.left);
  return json;
}

}  // namespace

Json json_of(const GroupReport& report, Duration hung_for) {
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
  for (const MemberInfo& member : report.members) members.push_back(json_of(member));
  json["members"] = std::move(members);
  json["missing"] = json_of(report.missing);
  Json candidates = Json::array();
  for (const WaitingCandidate& candidate : report.candidates) {
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
  for (const WaitingReceiver& receiver : report.receivers) {
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

}  // namespace muster::json
