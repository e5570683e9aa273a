#include "core/inspector.h"

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "core/session/page.h"
#include "core/session/reply.h"
#include "wire/operation_table.h"

// What operators are told of sessions, of what they wait for, and of namespaces. A page costs what
// is on it, however many there are.

namespace muster::core {
namespace {

/// Of one session, those that have waited longest first.
std::vector<const Parked*> by_age(const Session& session) {
  std::vector<const Parked*> waiting;
  waiting.reserve(session.parked.size());
  for (const auto& [id, parked] : session.parked) {
    if (!parked.wait->is_decided()) waiting.push_back(&parked);
  }
  std::sort(waiting.begin(), waiting.end(), [](const Parked* left, const Parked* right) {
    return left->received != right->received ? left->received < right->received
                                             : left->request_id < right->request_id;
  });
  return waiting;
}

}  // namespace

void Inspector::sessions(const RequestContext& context, const wire::Sessions& request) {
  const auto& by_id = context.session.name_space.sessions_by_id;
  wire::SessionsReply reply;
  std::uint64_t bytes = 0;
  std::uint64_t unseen_count = 0;
  for (auto next = by_id.upper_bound(request.after); next != by_id.end(); ++next) {
    if (bytes >= page_bytes_max) break;
    const Session& session = *next->second;
    if (!context.session.may_see(session.tenant())) {
      ++unseen_count;
      continue;
    }
    wire::SessionEntry& entry = reply.sessions.emplace_back();
    entry.id = session.id;
    entry.process = session.process;
    entry.connected = session.connection != 0;
    entry.silence = services_.silence(session);
    entry.groups = static_cast<std::uint32_t>(session.members.size());
    entry.waiting = static_cast<std::uint32_t>(session.parked.size());
    bytes += encoded_bytes(entry);
  }
  services_.effects().spend(reply.sessions.size() + unseen_count / unseen_per_step);
  services_.answer(context, answer_of(reply));
}

/// A page ends with a session, so that the next one can begin behind it. Of one session no more is
/// told than what fits a page.
void Inspector::waiters(const RequestContext& context, const wire::Waiters& request) {
  WaitingSessions& waiting = *context.session.waiting;
  wire::WaitersReply reply;
  std::deque<std::string> targets;  // viewed by the reply
  std::uint64_t bytes = 0;
  for (const Session* session = waiting.after(request.after);
       session != nullptr && bytes < page_bytes_max; session = waiting.after(session->id)) {
    if (!context.session.may_see(session->tenant())) {
      services_.effects().spend(1);
      continue;
    }
    services_.effects().spend(session->parked.size());
    for (const Parked* parked : by_age(*session)) {
      if (bytes >= page_bytes_max) break;
      reply.waiters.push_back({session->id, session->process, wire::name_of(parked->operation),
                               targets.emplace_back(parked->wait->target()),
                               services_.now() - parked->received,
                               parked->deadline - services_.now()});
      bytes += encoded_bytes(reply.waiters.back());
    }
  }
  services_.answer(context, answer_of(reply));
}

void Inspector::name_spaces(const RequestContext& context, const wire::NameSpaces& request) {
  const Session& viewer = context.session;
  wire::NameSpacesReply reply;
  std::uint64_t bytes = 0;
  std::uint64_t unseen_count = 0;
  for (const NameSpace* each = name_spaces_.after(request.after);
       each != nullptr && bytes < page_bytes_max; each = name_spaces_.after(each->name)) {
    if (!viewer.may_see_name_space(each->name)) {
      ++unseen_count;
      continue;
    }
    wire::NameSpaceEntry& entry = reply.name_spaces.emplace_back();
    entry.name = each->name;
    entry.keys = each->table.key_count();
    entry.memory_bytes = each->quota.used_bytes();
    entry.groups = static_cast<std::uint32_t>(each->groups.size());
    entry.sessions = each->sessions;
    const bool may_see_maker = viewer.may_see_all() || each->maker == &viewer.account.unit;
    if (each->maker != nullptr && may_see_maker) entry.maker = each->maker->name;
    if (each->sessions == 0) entry.idle = services_.now() - each->idle_since;
    bytes += encoded_bytes(entry);
  }
  services_.effects().spend(reply.name_spaces.size() + unseen_count / unseen_per_step);
  services_.answer(context, answer_of(reply));
}

Counts Inspector::counts() const {
  Counts counts = services_.held();
  sessions_.add_counts(counts);
  counts.timers += services_.timers().armed_count();
  counts.memory_bytes += services_.memory().all.used_bytes();
  return counts;
}

Snapshot Inspector::snapshot() const {
  Snapshot snapshot;
  snapshot.core = counts();
  snapshot.name_spaces = name_spaces_.size();
  snapshot.sessions_begun = sessions_.begun_count();
  snapshot.sessions_lost = sessions_.lost_count();
  snapshot.rim = rim_counts_;
  return snapshot;
}

}  // namespace muster::core
