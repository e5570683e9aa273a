#include <iostream>
#include <memory>

#include "commands.h"
#include "muster/inspect.h"
#include "output.h"
#include "why.h"

// The commands that tell who is there, and who waits for whom.

namespace musterctl {
namespace {

using muster::Store;

int run_sessions(Store& store, const Common& common) {
  const auto sessions = muster::inspect_sessions(store, common.timeout());
  if (!sessions) return report(sessions.error());
  Json all = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const muster::SessionInfo& session : *sessions) {
    Json json = {{"session", session.id}};
    add_process(json, session.process);
    json["connected"] = session.connected;
    json["silence_s"] = seconds_of(session.silence);
    json["groups"] = session.groups;
    json["waiting"] = session.waiting;
    all.push_back(std::move(json));
    rows.push_back({std::to_string(session.id), printable(session.process.host),
                    std::to_string(session.process.pid), printable(session.process.label),
                    session.connected ? "connected" : "away", text_of(session.silence),
                    std::to_string(session.groups), std::to_string(session.waiting)});
  }
  if (common.json) {
    print_json(all);
  } else {
    print_table({"SESSION", "HOST", "PID", "LABEL", "STATE", "SILENT", "GROUPS", "WAITING"}, rows);
  }
  return exit_ok;
}

int run_groups(Store& store, const Common& common) {
  const auto groups = muster::inspect_groups(store, common.timeout());
  if (!groups) return report(groups.error());
  Json all = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const muster::GroupInfo& group : *groups) {
    all.push_back({{"group", group.name},
                   {"state", group.epoch == 0 ? "forming" : "formed"},
                   {"epoch", group.epoch},
                   {"world_size", group.world_size},
                   {"live", group.live},
                   {"candidates", group.candidates},
                   {"round", group.round},
                   {"round_age_s", seconds_of(group.round_age)}});
    rows.push_back({printable(group.name), group.epoch == 0 ? "-" : std::to_string(group.epoch),
                    std::to_string(group.live) + "/" + std::to_string(group.world_size),
                    std::to_string(group.candidates),
                    group.epoch == 0   ? "forms"
                    : group.round == 0 ? "-"
                                       : "round " + std::to_string(group.round) + " for " +
                                             text_of(group.round_age)});
  }
  if (common.json) {
    print_json(all);
  } else {
    print_table({"GROUP", "EPOCH", "RANKS", "CANDIDATES", "WAITS IN"}, rows);
  }
  return exit_ok;
}

int run_waiters(Store& store, const Common& common) {
  const auto waiters = muster::inspect_waiters(store, common.timeout());
  if (!waiters) return report(waiters.error());
  Json all = Json::array();
  for (const muster::WaiterInfo& waiter : *waiters) {
    if (common.json) {
      all.push_back(json_of(waiter));
    } else {
      std::cout << explain(waiter) << '\n';
    }
  }
  if (common.json) print_json(all);
  return exit_ok;
}

void print(const muster::GroupReport& report, const Common& common) {
  if (common.json) return print_json(json_of(report));
  for (const std::string& line : explain(report)) std::cout << line << '\n';
}

int run_why(Store& store, const Common& common, const std::string& group) {
  const auto found = muster::inspect_group(store, group, common.timeout());
  if (!found) return report(found.error());
  print(*found, common);
  return exit_ok;
}

void add(CLI::App& app, Command& chosen, const char* name, const char* help,
         int (*run)(Store& store, const Common& common)) {
  app.add_subcommand(name, help)->callback([&chosen, run] { chosen = run; });
}

}  // namespace

void add_inspect_commands(CLI::App& app, Command& chosen) {
  add(app, chosen, "sessions", "Lists the processes that are connected, or may come back.",
      run_sessions);
  add(app, chosen, "groups", "Lists the groups, and in which round their ranks wait.", run_groups);
  add(app, chosen, "waiters", "Lists the calls that wait: whose, for what, how long.", run_waiters);
  auto group = std::make_shared<std::string>();
  auto* why = app.add_subcommand("why", "Why a group hangs: who is missing, who waits for whom.");
  why->add_option("GROUP", *group)->required();
  why->callback([=, &chosen] {
    chosen = [=](Store& store, const Common& common) { return run_why(store, common, *group); };
  });
}

}  // namespace musterctl
