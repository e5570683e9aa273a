#include "watch_work.h"

#include <algorithm>
#include <set>
#include <utility>

#include "body.h"

namespace muster::sim {

using namespace std::chrono_literals;

void WatchWork::plan() {
  process_.later(town().random.between(100ms, 2s), [this] { work(); });
}

void WatchWork::problem(const std::string& what) { town().oracle.problem("an observer: " + what); }

void WatchWork::work() {
  if (town().is_closing) return;
  plan();
  if (process_.client().incarnation() == 0 || process_.client().failure() != nullptr) return;
  switch (town().random.below(10)) {
    case 0: return look_at_status();
    case 1: return look_at_sessions();
    case 2: return look_at_waiters();
    case 3: return try_to_join();
    case 4: return try_to_declare_dead();
    case 5: return look_at_name_spaces();
    case 6: return try_to_drop();
    case 7: return look_at_history();
    default: return look_at_group();
  }
}

template <class Reply, class Use>
void WatchWork::look(const std::string& what, const wire::RequestBody& body, Use use) {
  Ask about;
  about.what = what;
  about.timeout = 5s;
  process_.ask(std::move(about), body,
               [use = std::move(use)](const Process::Reply& reply, protocol::Fate) {
                 if (reply) use(body_of<Reply>(*reply));
               });
}

/// 0: there is none of that name.
std::uint64_t WatchWork::number_of(const wire::StatusReply& status, std::string_view name) {
  for (const auto& [each, value] : status.fields) {
    if (each == name) return std::stoull(std::string(value));
  }
  return 0;
}

void WatchWork::look_at_status() {
  const std::string incarnation = std::to_string(process_.client().incarnation());
  look<wire::StatusReply>("status", wire::Status{}, [this, incarnation](const auto& status) {
    const std::pair<std::string_view, std::string_view> expected("incarnation", incarnation);
    const auto found = std::find(status.fields.begin(), status.fields.end(), expected);
    if (found == status.fields.end()) problem("the status is that of another server");
    if (number_of(status, "history_bytes") > number_of(status, "history_bytes_max")) {
      problem("the history is over its limit");
    }
  });
}

/// Each session once, of those who are in this namespace, and none that must be over.
void WatchWork::look_at_sessions() {
  const Instant asked = town().scheduler.now();
  look<wire::SessionsReply>("sessions", wire::Sessions{}, [this, asked](const auto& reply) {
    Oracle& oracle = town().oracle;
    std::set<std::uint64_t> ids;
    for (const wire::SessionEntry& entry : reply.sessions) {
      if (!ids.insert(entry.id).second) problem("a session is listed twice");
      const Life* life = oracle.life_of(entry.process.id, process_.number());
      if (life == nullptr || entry.process.pid != life->pid) {
        problem("a session of a process that is not here");
      } else if (life->died && *life->died < asked && oracle.is_surely_lost(*life, asked)) {
        problem("a session of " + life->name + ", which is dead");
      }
    }
  });
}

void WatchWork::look_at_waiters() {
  look<wire::WaitersReply>("waiters", wire::Waiters{}, [this](const auto& reply) {
    for (const wire::WaiterEntry& entry : reply.waiters) {
      const Life* life = town().oracle.life_of(entry.process.id, process_.number());
      if (life == nullptr || entry.operation.empty() || entry.target.empty()) {
        problem("nobody waits, or for nothing");
      }
    }
  });
}

/// In their order, each of a group that is meant, and of what may have been.
void WatchWork::look_at_history() {
  const std::uint64_t asked_of = process_.client().incarnation();
  look<wire::HistoryReply>("history", wire::History{}, [this, asked_of](const auto& reply) {
    if (process_.client().incarnation() != asked_of) return;
    std::uint64_t before = 0;
    for (const wire::HistoryRecord& record : reply.records) {
      if (record.serial <= before) problem("the history is out of order");
      before = record.serial;
      if (record.group.empty() || record.count == 0) problem("a record of nothing");
      const bool is_formed =
          record.what == GroupEventKind::formed || record.what == GroupEventKind::regrouped;
      if (is_formed && (record.epoch == 0 || record.world_size == 0)) problem("formed of nobody");
      town().oracle.check_record(process_.number(), record, asked_of);
    }
  });
}

/// Each once, by their names; its own has at least its own session.
void WatchWork::look_at_name_spaces() {
  look<wire::NameSpacesReply>("namespaces", wire::NameSpaces{}, [this](const auto& reply) {
    bool has_own = false;
    std::set<std::string_view> names;
    for (const wire::NameSpaceEntry& entry : reply.name_spaces) {
      if (!names.empty() && entry.name <= *names.rbegin()) problem("namespaces out of order");
      names.insert(entry.name);
      if (entry.idle.has_value() != (entry.sessions == 0)) problem("idle with sessions");
      if (entry.sessions == 0 && entry.groups != 0) problem("groups without sessions");
      has_own = has_own || (entry.name == process_.identity().name_space && entry.sessions != 0);
    }
    if (!has_own) problem("its own namespace is not there");
  });
}

/// Who is there, and who is missing: never the same rank, and nobody who must be lost.
void WatchWork::look_at_group() {
  const auto& groups = town().plan.groups[0];
  const std::string name = groups[town().random.below(groups.size())].name;
  const Instant asked = town().scheduler.now();
  wire::InspectGroup request;
  request.group = name;
  look<wire::InspectGroupReply>("inspect " + name, request, [this, name, asked](const auto& reply) {
    Oracle& oracle = town().oracle;
    std::set<std::uint32_t> ranks;
    for (const wire::MemberEntry& entry : reply.members) {
      if (!ranks.insert(entry.rank).second) problem("a rank is told of twice");
      oracle.check_entry(process_.number(), oracle.group_id(process_.number(), name), entry, asked);
    }
    for (const RankRange range : reply.missing) {
      for (int rank = range.first; rank <= range.last; ++rank) {
        if (ranks.count(static_cast<std::uint32_t>(rank)) != 0) problem("a member is missing");
      }
    }
    if (reply.epoch != 0 && ranks.size() != reply.world_size)
      problem("not all members are told of");
  });
}

void WatchWork::try_to_join() {
  wire::Join request;
  request.group = "g";
  request.world_size = town().plan.ranks;
  look<wire::FormedReply>("join as an observer", request,
                          [this](const auto&) { problem("it is a member of a group"); });
}

/// Of itself: it is to be refused before anybody looks whom it names.
void WatchWork::try_to_declare_dead() {
  const wire::ReportDead request{town().oracle.life(process_.number()).process, "it may not"};
  look<wire::EmptyReply>("report_dead by an observer", request,
                         [this](const auto&) { problem("it has declared somebody dead"); });
}

void WatchWork::try_to_drop() {
  look<wire::NumberReply>("drop_namespace by an observer", wire::DropNameSpace{"b"},
                          [this](const auto&) { problem("it has dropped a namespace"); });
}

}  // namespace muster::sim
