#include "stranger_work.h"

#include <utility>

#include "body.h"

namespace muster::sim {

using namespace std::chrono_literals;

namespace {

/// Gone by itself long before keys are compared.
constexpr Duration lifetime = 800ms;

}  // namespace

void StrangerWork::plan() {
  process_.later(town().random.between(20ms, 1s), [this] { work(); });
}

void StrangerWork::problem(const std::string& what) {
  town().oracle.problem("a stranger: " + what);
}

void StrangerWork::work() {
  if (town().is_closing) return;
  plan();
  if (process_.client().incarnation() == 0 || process_.client().failure() != nullptr) return;
  switch (town().random.below(10)) {
    case 0: return wait_for_a_key();
    case 1: return look_at_sessions();
    case 2: return look_at_waiters();
    case 3: return look_at_groups();
    case 4: return look_at_status();
    case 5: return inspect_a_group();
    case 6: return declare_dead();
    case 7: return drop();
    case 8: return join_own();
    default: return use_keys();
  }
}

template <class Reply, class Use>
void StrangerWork::ask(const std::string& what, const wire::RequestBody& body, Duration timeout,
                       Use use) {
  Ask about;
  about.what = what;
  about.timeout = timeout;
  process_.ask(std::move(about), body,
               [use = std::move(use)](const Process::Reply& reply, protocol::Fate) {
                 if (reply) use(body_of<Reply>(*reply));
               });
}

void StrangerWork::use_keys() {
  const std::string key = "stranger/" + std::to_string(process_.number());
  const wire::Set set{key, "s", lifetime, false, false};
  ask<wire::AppliedReply>("set " + key, set, 5s, [](const auto&) {});
  ask<wire::ValueReply>("get " + key, wire::Get{key}, Duration(0), [this](const auto& reply) {
    if (reply.value != "s") problem("its key has another value");
  });
}

void StrangerWork::wait_for_a_key() {
  const auto never = [this](const auto&) { problem("a key that was never set"); };
  ask<wire::ValueReply>("get never", wire::Get{"never"}, 4s, never);
  ask<wire::ValueReply>("take never", wire::Take{"never"}, 4s, never);
}

void StrangerWork::check_process(const ProcessInfo& process) {
  const Life* life = town().oracle.life_of(process.id, process_.number());
  if (life == nullptr || !life->is_stranger) problem("it is told of a process of another tenant");
}

void StrangerWork::look_at_sessions() {
  ask<wire::SessionsReply>("sessions", wire::Sessions{}, 5s, [this](const auto& reply) {
    for (const wire::SessionEntry& entry : reply.sessions) check_process(entry.process);
  });
}

void StrangerWork::look_at_waiters() {
  ask<wire::WaitersReply>("waiters", wire::Waiters{}, 5s, [this](const auto& reply) {
    for (const wire::WaiterEntry& entry : reply.waiters) check_process(entry.process);
  });
}

void StrangerWork::look_at_groups() {
  ask<wire::GroupsReply>("groups", wire::Groups{}, 5s, [this](const auto& reply) {
    for (const wire::GroupEntry& entry : reply.groups) {
      if (!entry.name.starts_with("own")) problem("it is told of a group of another tenant");
    }
  });
  ask<wire::HistoryReply>("history", wire::History{}, 5s, [this](const auto& reply) {
    for (const wire::HistoryRecord& record : reply.records) {
      if (!record.group.starts_with("own"))
        problem("it is told of the past of a group of another tenant");
      if (record.process) check_process(*record.process);
    }
  });
  ask<wire::NameSpacesReply>("namespaces", wire::NameSpaces{}, 5s, [this](const auto& reply) {
    for (const wire::NameSpaceEntry& entry : reply.name_spaces) {
      if (!entry.name.empty()) problem("it is told of a namespace that is not for it");
    }
  });
}

void StrangerWork::look_at_status() {
  ask<wire::StatusReply>("status", wire::Status{}, 5s, [this](const auto& reply) {
    for (const auto& [name, value] : reply.fields) {
      if (name == "keys_count" || name == "namespaces_count")
        problem("it is told of all namespaces");
      if (name == "other_namespaces_waiting" && !value.empty()) problem("it is told of waits in b");
    }
  });
}

void StrangerWork::inspect_a_group() {
  const auto& groups = town().plan.groups[0];
  wire::InspectGroup request;
  const std::string name = groups[town().random.below(groups.size())].name;
  request.group = name;
  ask<wire::InspectGroupReply>("inspect " + name, request, 5s, [this](const auto&) {
    problem("it has looked into a group of another tenant");
  });
}

void StrangerWork::declare_dead() {
  Oracle& oracle = town().oracle;
  const Life& other = oracle.lives().at(1 + town().random.below(oracle.lives().size() - 1));
  if (other.is_stranger) return;
  ask<wire::EmptyReply>(
      "report_dead " + other.name, wire::ReportDead{other.process, "it may not"}, 5s,
      [this](const auto&) { problem("it has declared a process of another tenant dead"); });
}

void StrangerWork::drop() {
  ask<wire::NumberReply>("drop_namespace b", wire::DropNameSpace{"b"}, 5s, [this](const auto&) {
    problem("it has dropped a namespace that is not for it");
  });
}

/// Alone, and leaves it again.
void StrangerWork::join_own() {
  const std::string name = "own" + std::to_string(process_.number());
  wire::Join request;
  request.group = name;
  request.world_size = 1;
  ask<wire::FormedReply>("join " + name, request, 5s, [this](const auto& formed) {
    process_.later(town().random.between(Duration(1), 2s), [this, epoch = formed.epoch] {
      ask<wire::EmptyReply>("leave", wire::Leave{epoch}, 5s, [](const auto&) {});
    });
  });
}

}  // namespace muster::sim
