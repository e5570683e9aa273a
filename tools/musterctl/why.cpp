#include "why.h"

namespace musterctl {
namespace {

using muster::GroupReport;
using muster::MemberInfo;
using muster::MemberState;
using muster::RankRange;

std::string_view name_of(MemberState state) {
  switch (state) {
    case MemberState::live: return "live";
    case MemberState::silent: return "silent";
    case MemberState::lost: return "lost";
    case MemberState::left: return "left";
    case MemberState::candidate: return "candidate";
  }
  return "unknown";
}

const MemberInfo* member_at(const GroupReport& report, int rank) {
  for (const MemberInfo& member : report.members) {
    if (member.rank == rank && member.state != MemberState::candidate) return &member;
  }
  return nullptr;
}

std::string member_text(const MemberInfo& member) {
  return "rank " + std::to_string(member.rank) + " (" + text_of(member.process) + ", silent for " +
         text_of(member.silence) + ")";
}

/// The rank with its process, as far as it is known.
std::string rank_text(const GroupReport& report, int rank) {
  const MemberInfo* const member = member_at(report, rank);
  if (member != nullptr) return member_text(*member);
  return "rank " + std::to_string(rank) + " (nobody has come as it)";
}

/// One line for each of the first of them.
void add_ranks(std::vector<std::string>& lines, const GroupReport& report,
               const std::string& introduction, const std::vector<RankRange>& ranks) {
  constexpr int told_in_full_max = 16;
  if (ranks.empty()) return;
  lines.push_back(introduction + " " + text_of(ranks) + ":");
  int told = 0;
  for (const RankRange range : ranks) {
    for (int rank = range.first; rank <= range.last; ++rank) {
      if (++told > told_in_full_max) return lines.push_back("      and others");
      lines.push_back("      " + rank_text(report, rank));
    }
  }
}

void add_members(std::vector<std::string>& lines, const GroupReport& report, MemberState state,
                 const std::string& introduction) {
  for (const MemberInfo& member : report.members) {
    if (member.state == state) lines.push_back("  " + introduction + " " + member_text(member));
  }
}

void explain_forming(std::vector<std::string>& lines, const GroupReport& report) {
  lines.push_back("group \"" + printable(report.name) + "\": forms; " +
                  std::to_string(report.members.size()) + " of " +
                  std::to_string(report.world_size) + " ranks are there, the first for " +
                  text_of(report.age));
  add_ranks(lines, report, "  waits for", report.missing);
  for (const MemberInfo& member : report.members) {
    lines.push_back("  waiting: " + member_text(member));
  }
}

void explain_formed(std::vector<std::string>& lines, const GroupReport& report) {
  lines.push_back("group \"" + printable(report.name) + "\": epoch " +
                  std::to_string(report.epoch) + ", " + std::to_string(report.world_size) +
                  " ranks, formed " + text_of(report.age) + " ago");
  add_members(lines, report, MemberState::lost, "lost:");
  add_members(lines, report, MemberState::left, "has left:");
  add_members(lines, report, MemberState::candidate, "candidate for the next epoch:");
  if (report.round) {
    lines.push_back("  round " + std::to_string(report.round->number) + ", " + report.round->call +
                    ": open for " + text_of(report.round->age) + ", called by " +
                    text_of(report.round->called));
    add_ranks(lines, report, "    waits for", report.round->missing);
  }
  if (report.regroup) {
    const std::string size = report.regroup->new_size == 0
                                 ? std::string()
                                 : " to " + std::to_string(report.regroup->new_size) + " ranks";
    lines.push_back("  regroup" + size + ": open for " + text_of(report.regroup->age) +
                    ", called by " + text_of(report.regroup->called));
    add_ranks(lines, report, "    waits for", report.regroup->missing);
  }
  for (const muster::WaitingReceiver& receiver : report.receivers) {
    lines.push_back("  rank " + std::to_string(receiver.rank) + " waits for an object of tag " +
                    std::to_string(receiver.tag) + " for " + text_of(receiver.age) + ", from " +
                    rank_text(report, receiver.source));
  }
  if (report.failure) {
    lines.push_back("  the last round that failed, " + text_of(report.failure_age) +
                    " ago: " + report.failure->message());
  }
}

Json member_json(const MemberInfo& member) {
  Json json = {{"rank", member.rank}, {"state", name_of(member.state)}};
  add_process(json, member.process);
  json["silence_s"] = seconds_of(member.silence);
  return json;
}

Json failure_json(const muster::Error& error, muster::Duration age) {
  Json json = {{"code", name_of(error.code)}, {"age_s", seconds_of(age)}, {"round", error.round}};
  Json ranks = Json::array();
  for (const muster::RankReport& report : error.ranks) {
    Json rank = {{"rank", report.rank}};
    if (report.joined) add_process(rank, report.process);
    if (!report.called.empty()) rank["called"] = report.called;
    ranks.push_back(std::move(rank));
  }
  json["ranks"] = std::move(ranks);
  json["message"] = error.message();
  return json;
}

}  // namespace

bool has_waiters(const GroupReport& report) {
  return report.epoch == 0 || report.round || report.regroup || !report.receivers.empty();
}

std::vector<std::string> explain(const GroupReport& report) {
  std::vector<std::string> lines;
  if (report.epoch == 0) {
    explain_forming(lines, report);
  } else {
    explain_formed(lines, report);
  }
  if (!has_waiters(report)) lines.emplace_back("  nobody waits");
  return lines;
}

std::string explain(const muster::WaiterInfo& waiter) {
  return text_of(waiter.process) + " waits for " + text_of(waiter.age) + " in " + waiter.operation +
         ": " + printable(waiter.target) + " (" + text_of(waiter.left) + " left)";
}

Json json_of(const GroupReport& report) {
  Json json = {{"group", report.name},
               {"state", report.epoch == 0 ? "forming" : "formed"},
               {"epoch", report.epoch},
               {"world_size", report.world_size},
               {"age_s", seconds_of(report.age)}};
  Json members = Json::array();
  for (const MemberInfo& member : report.members) members.push_back(member_json(member));
  json["members"] = std::move(members);
  json["missing"] = json_of(report.missing);
  if (report.round) {
    json["round"] = {{"number", report.round->number},
                     {"call", report.round->call},
                     {"age_s", seconds_of(report.round->age)},
                     {"called", json_of(report.round->called)},
                     {"missing", json_of(report.round->missing)}};
  }
  if (report.regroup) {
    json["regroup"] = {{"new_size", report.regroup->new_size},
                       {"min_size", report.regroup->min_size},
                       {"age_s", seconds_of(report.regroup->age)},
                       {"called", json_of(report.regroup->called)},
                       {"missing", json_of(report.regroup->missing)}};
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
  if (report.failure) json["last_failure"] = failure_json(*report.failure, report.failure_age);
  json["explanation"] = explain(report);
  return json;
}

Json json_of(const muster::WaiterInfo& waiter) {
  Json json = {{"session", waiter.session}};
  add_process(json, waiter.process);
  json["operation"] = waiter.operation;
  json["target"] = waiter.target;
  json["age_s"] = seconds_of(waiter.age);
  json["left_s"] = seconds_of(waiter.left);
  return json;
}

}  // namespace musterctl
