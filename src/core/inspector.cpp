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
  waiting.reserve(session.requests.parked.size());
  for (const auto& [id, parked] : session.requests.parked) {
    if (!parked.wait->is_decided()) waiting.push_back(&parked);
  }
  std::sort(waiting.begin(), waiting.end(), [](const Parked* left, const Parked* right) {
    return left->received != right->received ? left->received < right->received
                                             : left->request_id < right->request_id;
  });
  return waiting;
}

}  // namespace

wire::SessionsReply Inspector::page(const NameSpace& name_space, const Viewer& viewer,
                                    const wire::Sessions& request) {
  const auto& by_id = name_space.sessions_by_id;
  wire::SessionsReply reply;
  std::uint64_t bytes = 0;
  std::uint64_t unseen_count = 0;
  for (auto next = by_id.upper_bound(request.after); next != by_id.end(); ++next) {
    if (bytes >= page_bytes_max) break;
    const Session& session = *next->second;
    if (!viewer.may_see(session.tenant())) {
      ++unseen_count;
      continue;
    }
    wire::SessionEntry& entry = reply.sessions.emplace_back();
    entry.id = session.id;
    entry.process = session.process;
    entry.connected = session.connection != 0;
    entry.silence = services_.silence(session);
    entry.groups = static_cast<std::uint32_t>(session.members.size());
    entry.waiting = static_cast<std::uint32_t>(session.requests.parked.size());
    entry.key = session.liveness.key;
    bytes += encoded_bytes(entry);
  }
  for (std::size_t index = 0; index < reply.sessions.size(); ++index) {
    const std::uint64_t key = reply.sessions[index].key;
    if (key == 0 && reply.keys.empty()) continue;
    reply.keys.resize(index);
    reply.keys.push_back(key);
  }
  services_.effects().spend(reply.sessions.size() + unseen_count / unseen_per_step);
  return reply;
}

void Inspector::tell(const RequestContext& context, const wire::Sessions& request) {
  const Session& viewer = context.session;
  services_.answer(context, answer_of(page(viewer.name_space, Viewer(viewer), request)));
}

/// A page ends with a session, so that the next one can begin behind it. Of one session no more is
/// told than what fits a page.
wire::WaitersReply Inspector::page(NameSpace& name_space, const Viewer& viewer,
                                   const wire::Waiters& request, std::deque<std::string>& targets) {
  WaitingSessions& waiting = name_space.waiting;
  wire::WaitersReply reply;
  std::uint64_t bytes = 0;
  for (const Session* session = waiting.after(request.after);
       session != nullptr && bytes < page_bytes_max; session = waiting.after(session->id)) {
    if (!viewer.may_see(session->tenant())) {
      services_.effects().spend(1);
      continue;
    }
    services_.effects().spend(session->requests.parked.size());
    for (const Parked* parked : by_age(*session)) {
      if (bytes >= page_bytes_max) break;
      reply.waiters.push_back({session->id, session->process, wire::name_of(parked->operation),
                               targets.emplace_back(parked->wait->target()),
                               services_.now() - parked->received,
                               parked->deadline() - services_.now()});
      bytes += encoded_bytes(reply.waiters.back());
    }
  }
  return reply;
}

void Inspector::tell(const RequestContext& context, const wire::Waiters& request) {
  std::deque<std::string> targets;
  const Session& viewer = context.session;
  services_.answer(context, answer_of(page(viewer.name_space, Viewer(viewer), request, targets)));
}

wire::NameSpacesReply Inspector::page(const Viewer& viewer, const wire::NameSpaces& request) {
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
    const bool may_see_maker =
        viewer.may_see_all() || (each->maker != nullptr && viewer.is_of(*each->maker));
    if (each->maker != nullptr && may_see_maker) entry.maker = each->maker->name;
    if (each->sessions == 0) entry.idle = services_.now() - each->idle_since;
    bytes += encoded_bytes(entry);
  }
  services_.effects().spend(reply.name_spaces.size() + unseen_count / unseen_per_step);
  return reply;
}

void Inspector::tell(const RequestContext& context, const wire::NameSpaces& request) {
  services_.answer(context, answer_of(page(Viewer(context.session), request)));
}

void Inspector::tell(const RequestContext& context, const wire::History& request) {
  const Session& viewer = context.session;
  services_.answer(context, answer_of(name_spaces_.history().page(viewer.name_space.name,
                                                                  Viewer(viewer), request)));
}

Counts Inspector::counts() const {
  Counts counts = services_.counted().held;
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
  snapshot.sessions_lost = services_.counted().tallies.sessions_lost();
  snapshot.history_bytes = name_spaces_.history().bytes();
  snapshot.rim = rim_counts_;
  return snapshot;
}

Report Inspector::report() const {
  Report report;
  report.snapshot = snapshot();
  report.tallies = services_.counted().tallies;
  report.guest_requests = guest_counts_;
  report.group_states = services_.counted().group_states;
  report.epochs_formed = services_.counted().epochs_formed;
  report.rounds_undecided = services_.counted().open_rounds.count();
  report.oldest_round = services_.counted().open_rounds.oldest(services_.now());
  report.oldest_wait = services_.counted().parked.oldest(services_.now());
  report.oldest_forming = services_.counted().forming_groups.oldest(services_.now());
  report.oldest_broken = services_.counted().broken_groups.oldest(services_.now());
  report.is_draining = services_.counted().is_draining;
  report.uptime = services_.now() - services_.clock().start();
  report.paused = services_.clock().paused();
  const ServerMemory& memory = services_.memory();
  report.memory_reserve_used_bytes = memory.all.used_reserve_bytes();
  report.memory_reserve_bytes = memory.all.reserve_bytes();
  report.reply_bytes = memory.replies.used_bytes();
  report.kept_bytes = memory.freed.kept_bytes();
  report.history_bytes_max = name_spaces_.history().bytes_max();
  return report;
}

}  // namespace muster::core
