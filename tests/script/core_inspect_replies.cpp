#include "core_inspect_replies.h"

#include "wire/reply.h"

namespace muster::script {
namespace {

std::string_view name_of(wire::MemberState state) {
  switch (state) {
    case wire::MemberState::live: return "live";
    case wire::MemberState::silent: return "silent";
    case wire::MemberState::lost: return "lost";
    case wire::MemberState::left: return "left";
    case wire::MemberState::candidate: return "candidate";
    case wire::MemberState::away: return "away";
  }
  return "?";
}

std::string member_text(const wire::MemberEntry& member, const Processes& processes) {
  return std::to_string(member.rank) + ":" + processes.name_of(member.process.id) + ":" +
         std::string(name_of(member.state));
}

std::string ranks_or_none(const std::vector<RankRange>& ranges) {
  return ranges.empty() ? "none" : text_of(ranges);
}

}  // namespace

void tell_members(Line& line, const wire::MembersReply& reply, const Processes& processes) {
  tell_members(line, reply.members, processes);
  std::vector<std::string> ranks;
  for (const auto& rank : reply.previous_ranks) ranks.push_back(rank ? std::to_string(*rank) : "-");
  line.further("previous", ranks.empty() ? "none" : joined(ranks, ","));
}

void tell_members(Line& line, const std::vector<wire::MemberEntry>& entries,
                  const Processes& processes) {
  std::vector<std::string> members;
  std::vector<std::string> infos;
  std::vector<std::string> silences;
  for (const wire::MemberEntry& member : entries) {
    members.push_back(member_text(member, processes));
    infos.push_back(in_quotes(member.info));
    silences.push_back(script::text_of(member.silence));
  }
  line.with("members", joined(members, ","));
  line.further("infos", joined(infos, ","));
  line.further("silences", joined(silences, ","));
}

void tell_sessions(Line& line, const wire::SessionsReply& reply, const Processes& processes) {
  std::vector<std::string> names;
  std::vector<std::string> groups;
  std::vector<std::string> waiting;
  for (const wire::SessionEntry& entry : reply.sessions) {
    names.push_back(processes.name_of(entry.process.id) + (entry.connected ? "" : ":away"));
    groups.push_back(std::to_string(entry.groups));
    waiting.push_back(std::to_string(entry.waiting));
  }
  line.with("sessions", joined(names, ","));
  line.further("groups", joined(groups, ","));
  line.further("waiting", joined(waiting, ","));
  std::vector<std::string> keys;
  for (const std::uint64_t key : reply.keys) keys.push_back(std::to_string(key));
  if (!keys.empty()) line.further("keys", joined(keys, ","));
}

void tell_groups(Line& line, const wire::GroupsReply& reply) {
  std::vector<std::string> names;
  std::vector<std::string> live;
  std::vector<std::string> rounds;
  for (const wire::GroupEntry& entry : reply.groups) {
    names.push_back(std::string(entry.name));
    live.push_back(std::to_string(entry.live) + "/" + std::to_string(entry.world_size));
    rounds.push_back(std::to_string(entry.round));
  }
  line.with("groups", joined(names, ","));
  line.further("live", joined(live, ","));
  line.further("rounds", joined(rounds, ","));
}

namespace {

void tell_candidates(Line& line, const std::vector<wire::CandidateEntry>& entries,
                     const Processes& processes) {
  std::vector<std::string> names;
  std::vector<std::string> needs;
  std::vector<std::string> ages;
  std::vector<std::string> left;
  for (const wire::CandidateEntry& entry : entries) {
    names.push_back(member_text(entry.member, processes));
    needs.push_back(entry.waits_for_holder ? "holder" : entry.standby ? "standby" : "regroup");
    ages.push_back(script::text_of(entry.age));
    left.push_back(script::text_of(entry.left));
  }
  if (names.empty()) return;
  line.with("candidates", joined(names, ","));
  line.with("needs", joined(needs, ","));
  line.further("candidate_ages", joined(ages, ","));
  line.further("candidates_left", joined(left, ","));
}

}  // namespace

void tell_group(Line& line, const wire::InspectGroupReply& reply, const Processes& processes) {
  line.with("epoch", reply.epoch == 0 ? "none" : std::to_string(reply.epoch));
  line.further("of", std::to_string(reply.world_size));
  line.further("age", script::text_of(reply.age));
  tell_members(line, reply.members, processes);
  if (reply.epoch == 0) line.with("missing", ranks_or_none(reply.missing));
  tell_candidates(line, reply.candidates, processes);
  if (reply.round) {
    line.with("round", std::to_string(reply.round->number));
    line.further("call", in_quotes(reply.round->call));
    line.further("round_age", script::text_of(reply.round->age));
    line.with("called", ranks_or_none(reply.round->called));
    line.with("missing", ranks_or_none(reply.round->missing));
    if (reply.round->older_rounds != 0) {
      line.with("older", std::to_string(reply.round->older_rounds));
    }
  }
  if (reply.confirming) {
    line.with("confirming", std::to_string(reply.confirming->number));
    line.further("confirming_call", in_quotes(reply.confirming->call));
    line.with("leaving", ranks_or_none(reply.confirming->called));
    line.with("unconfirmed", ranks_or_none(reply.confirming->missing));
  }
  if (reply.regroup) {
    line.with("regroup", std::to_string(reply.regroup->new_size));
    line.further("regroup_age", script::text_of(reply.regroup->age));
    line.with("called", ranks_or_none(reply.regroup->called));
    line.with("missing", ranks_or_none(reply.regroup->missing));
  }
  std::vector<std::string> receivers;
  for (const wire::ReceiverEntry& entry : reply.receivers) {
    receivers.push_back(std::to_string(entry.rank) + ":from" + std::to_string(entry.source));
  }
  if (!receivers.empty()) line.with("receivers", joined(receivers, ","));
  if (!reply.unheld.empty()) line.with("unheld", text_of(reply.unheld));
  if (!reply.failed) return;
  line.with("failed", std::string(muster::name_of(reply.failure->code)));
  line.further("failed_ranks", ranks_or_none(reply.failure->rank_ranges));
  line.further("failure_call", in_quotes(reply.failure_call));
  line.further("failure_age", script::text_of(reply.failure_age));
}

void tell_waiters(Line& line, const wire::WaitersReply& reply, const Processes& processes) {
  std::vector<std::string> names;
  std::vector<std::string> targets;
  std::vector<std::string> ages;
  for (const wire::WaiterEntry& entry : reply.waiters) {
    names.push_back(processes.name_of(entry.process.id) + ":" + std::string(entry.operation));
    targets.push_back(std::string(entry.target));
    ages.push_back(script::text_of(entry.age));
  }
  line.with("waiters", names.empty() ? "none" : joined(names, ","));
  line.further("targets", in_quotes(joined(targets, "; ")));
  line.further("ages", joined(ages, ","));
}

/// "memory-bytes-max=1024"; "!heartbeat=1000000": it changes with a restart only.
void tell_settings(Line& line, const wire::SettingsReply& reply) {
  std::vector<std::string> settings;
  std::vector<std::string> used;
  std::vector<std::string> ranges;
  for (const wire::SettingEntry& entry : reply.settings) {
    settings.push_back((entry.fixed_because.empty() ? "" : "!") + std::string(entry.name) + "=" +
                       std::to_string(entry.value));
    used.push_back(entry.used ? std::to_string(*entry.used) : "none");
    ranges.push_back(std::to_string(entry.least) + "-" + std::to_string(entry.most));
  }
  line.with("settings", joined(settings, ","));
  line.further("used", joined(used, ","));
  line.further("ranges", joined(ranges, ","));
}

/// "rank_lost:tp0@2of8(closed)#1-3x3": the ranks that are told of, and how many there were.
void tell_history(Line& line, const wire::HistoryReply& reply, const Processes& processes) {
  std::vector<std::string> records;
  std::vector<std::string> serials;
  std::vector<std::string> ages;
  std::vector<std::string> lasted;
  std::vector<std::string> details;
  for (const wire::HistoryRecord& record : reply.records) {
    std::string text(muster::name_of(record.what));
    text += ":" + name_or_quoted(record.group) + "@" + std::to_string(record.epoch) + "of" +
            std::to_string(record.world_size);
    if (record.error) {
      const Error& error = *record.error;
      if (record.what == GroupEventKind::rank_lost) {
        text += "(" + std::string(muster::name_of(error.cause)) + ")";
      } else {
        text += "(" + std::string(muster::name_of(error.code)) + ")";
      }
      if (!error.rank_ranges.empty()) text += "#" + ranks_or_none(error.rank_ranges);
    }
    if (record.process) text += "!" + processes.name_of(record.process->id);
    if (record.count != 1) text += "x" + std::to_string(record.count);
    records.push_back(std::move(text));
    if (record.error && !record.error->detail.empty()) {
      details.push_back(record.error->decided_by + ": " + record.error->detail);
    }
    serials.push_back(std::to_string(record.serial));
    ages.push_back(script::text_of(record.age));
    lasted.push_back(script::text_of(record.lasted));
  }
  line.with("records", records.empty() ? "none" : joined(records, ";"));
  line.further("serials", joined(serials, ","));
  line.further("ages", joined(ages, ","));
  line.further("lasted", joined(lasted, ","));
  line.further("details", in_quotes(joined(details, "; ")));
  line.further("forgotten", std::to_string(reply.forgotten));
  line.further("known_for", script::text_of(reply.known_for));
}

void tell_name_spaces(Line& line, const wire::NameSpacesReply& reply) {
  std::vector<std::string> names;
  std::vector<std::string> keys;
  std::vector<std::string> bytes;
  std::vector<std::string> groups;
  std::vector<std::string> sessions;
  std::vector<std::string> makers;
  std::vector<std::string> idle;
  for (const wire::NameSpaceEntry& entry : reply.name_spaces) {
    names.push_back(name_or_quoted(entry.name));
    keys.push_back(std::to_string(entry.keys));
    bytes.push_back(std::to_string(entry.memory_bytes));
    groups.push_back(std::to_string(entry.groups));
    sessions.push_back(std::to_string(entry.sessions));
    makers.push_back(name_or_quoted(entry.maker));
    idle.push_back(entry.idle ? script::text_of(*entry.idle) : "none");
  }
  line.with("namespaces", names.empty() ? "none" : joined(names, ","));
  line.with("keys", joined(keys, ","));
  line.further("bytes", joined(bytes, ","));
  line.further("groups", joined(groups, ","));
  line.with("sessions", joined(sessions, ","));
  line.further("makers", joined(makers, ","));
  line.with("idle", joined(idle, ","));
}

}  // namespace muster::script
