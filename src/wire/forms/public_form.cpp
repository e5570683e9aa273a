#include "wire/forms/public_form.h"

#include "base/text.h"
#include "wire/request_bodies.h"

namespace muster::wire {
namespace {

WaitingRound public_form(const RoundEntry& entry) {
  return {entry.number, std::string(entry.call), entry.age,
          entry.called, entry.missing,           static_cast<int>(entry.older_rounds)};
}

WaitingRegroup public_form(const RegroupEntry& entry) {
  const bool is_everyone = entry.new_size == Regroup::everyone;
  return {is_everyone ? 0 : static_cast<int>(entry.new_size),
          is_everyone,
          static_cast<int>(entry.min_size),
          entry.age,
          entry.called,
          entry.missing};
}

WaitingReceiver public_form(const ReceiverEntry& entry) {
  return {static_cast<int>(entry.rank), static_cast<int>(entry.source), entry.tag, entry.sequence,
          entry.age};
}

WaitingCandidate public_form(const CandidateEntry& entry) {
  return {public_form(entry.member),
          static_cast<int>(entry.world_size),
          entry.standby,
          entry.waits_for_holder,
          entry.age,
          entry.left};
}

}  // namespace

MemberInfo public_form(const MemberEntry& entry) {
  MemberInfo member;
  member.rank = static_cast<int>(entry.rank);
  switch (entry.state) {
    case MemberState::live: member.state = muster::MemberState::live; break;
    case MemberState::silent: member.state = muster::MemberState::silent; break;
    case MemberState::lost: member.state = muster::MemberState::lost; break;
    case MemberState::left: member.state = muster::MemberState::left; break;
    case MemberState::candidate: member.state = muster::MemberState::candidate; break;
    case MemberState::away: member.state = muster::MemberState::away; break;
  }
  member.process = entry.process;
  member.silence = entry.silence;
  member.info = entry.info;
  return member;
}

SessionInfo public_form(const SessionEntry& entry) {
  return {entry.id,
          entry.process,
          entry.connected,
          entry.silence,
          entry.groups,
          entry.waiting,
          entry.key != 0 ? base::hex_digits(entry.key) : std::string()};
}

GroupInfo public_form(const GroupEntry& entry) {
  return {std::string(entry.name),
          entry.epoch,
          static_cast<int>(entry.world_size),
          static_cast<int>(entry.live),
          static_cast<int>(entry.candidates),
          entry.round,
          entry.round_age};
}

WaiterInfo public_form(const WaiterEntry& entry) {
  return {entry.session, entry.process, std::string(entry.operation), std::string(entry.target),
          entry.age,     entry.left};
}

NamespaceInfo public_form(const NameSpaceEntry& entry) {
  return {std::string(entry.name),  entry.keys, entry.memory_bytes, entry.groups, entry.sessions,
          std::string(entry.maker), entry.idle};
}

GroupReport public_form(const InspectGroupReply& reply, std::string_view name) {
  GroupReport report;
  report.name = name;
  report.epoch = reply.epoch;
  report.world_size = static_cast<int>(reply.world_size);
  report.age = reply.age;
  for (const MemberEntry& member : reply.members) {
    report.members.push_back(public_form(member));
  }
  report.missing = reply.missing;
  for (const CandidateEntry& candidate : reply.candidates) {
    report.candidates.push_back(public_form(candidate));
  }
  if (reply.round) report.round = public_form(*reply.round);
  if (reply.confirming) report.confirming = public_form(*reply.confirming);
  if (reply.regroup) report.regroup = public_form(*reply.regroup);
  for (const ReceiverEntry& receiver : reply.receivers) {
    report.receivers.push_back(public_form(receiver));
  }
  if (reply.failed) report.failure = reply.failure;
  report.failure_age = reply.failure_age;
  report.failure_call = reply.failure_call;
  report.unheld = reply.unheld;
  return report;
}

GroupEvent public_form(const HistoryRecord& record) {
  GroupEvent entry{record.serial, record.age,
                   record.lasted, record.count,
                   record.what,   std::string(record.group),
                   record.epoch,  static_cast<int>(record.world_size),
                   record.error,  record.process};
  if (!entry.error) return entry;
  entry.error->group = entry.group;
  entry.error->epoch = entry.epoch;
  return entry;
}

}  // namespace muster::wire
