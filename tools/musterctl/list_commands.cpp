#include <algorithm>
#include <memory>
#include <vector>

#include "commands.h"
#include "json/why.h"
#include "muster/inspect.h"

// The commands that list: keys and objects, the server's numbers, sessions, groups, waits.

namespace musterctl {
namespace {

using muster::Result;
using muster::json::explain;

std::string line_of(const muster::KeyInfo& info) {
  return std::to_string(info.value_bytes) + '\t' + (info.ttl ? text_of(*info.ttl) : "-") + '\t' +
         (info.bound ? "bound" : "-") + '\t' + printable(info.key) + '\n';
}

Result<std::vector<muster::KeyInfo>> list_keys(Run& run, const std::string& prefix) {
  std::vector<muster::KeyInfo> keys;
  std::uint64_t cursor = 0;
  do {
    auto page = run.store.list(prefix, cursor, run.left());
    if (!page) return page.error();
    for (muster::KeyInfo& info : page->keys) keys.push_back(std::move(info));
    cursor = page->cursor;
  } while (cursor != 0);
  return keys;
}

struct ListArguments {
  std::string prefix;
  bool objects = false;
};

Result<Answer> run_list(Run& run, const ListArguments& arguments) {
  auto listed = arguments.objects ? muster::inspect_objects(run.store, arguments.prefix, run.left())
                                  : list_keys(run, arguments.prefix);
  if (!listed) return listed.error();
  std::sort(listed->begin(), listed->end(),
            [](const auto& left, const auto& right) { return left.key < right.key; });
  Answer answer;
  answer.document = Json::array();
  for (const muster::KeyInfo& info : *listed) {
    if (run.common.json) {
      answer.document.push_back(json_of(info));
    } else {
      answer.text += line_of(info);
    }
  }
  return answer;
}

void add_list(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<ListArguments>();
  auto* list = app.add_subcommand("ls", "Lists keys: bytes, time to live, binding, name.");
  list->footer(
      footer_with("  musterctl ls rank0/\n"
                  "  musterctl ls --objects group/trainer/\n"
                  "  musterctl --json ls | jq -r '.[].key'\n"));
  list->add_option("PREFIX", arguments->prefix, "only those whose names begin with it");
  list->add_flag("--objects", arguments->objects,
                 "list what groups hold instead: objects on their way, values of rounds");
  list->callback([=, &chosen] {
    chosen = {[=](Run& run) { return run_list(run, *arguments); }, Kind::reads};
  });
}

Result<Answer> run_status(Run& run) {
  const auto status = run.store.status(run.left());
  if (!status) return status.error();
  Answer answer;
  std::size_t width = 0;
  for (const auto& field : *status) width = std::max(width, field.first.size());
  answer.document = muster::json::json_of_status(*status);
  for (const auto& [name, value] : *status) {
    answer.text += name + std::string(width - name.size() + 2, ' ') + printable(value) + '\n';
  }
  return answer;
}

Result<Answer> run_sessions(Run& run) {
  const auto sessions = muster::inspect_sessions(run.store, run.left());
  if (!sessions) return sessions.error();
  Answer answer;
  answer.document = muster::json::list_of(*sessions);
  std::vector<std::string> head = {"SESSION", "HOST",   "PID",    "LABEL",
                                   "STATE",   "SILENT", "GROUPS", "WAITING"};
  const bool have_keys = std::any_of(sessions->begin(), sessions->end(),
                                     [](const auto& session) { return !session.key_id.empty(); });
  if (have_keys) head.emplace_back("KEY");
  std::vector<std::vector<std::string>> rows;
  for (const muster::SessionInfo& session : *sessions) {
    rows.push_back({std::to_string(session.id), printable(session.process.host),
                    session.process.pid != 0 ? std::to_string(session.process.pid) : "-",
                    printable(session.process.label), session.connected ? "connected" : "away",
                    text_of(session.silence), std::to_string(session.groups),
                    std::to_string(session.waiting)});
    if (have_keys) rows.back().push_back(session.key_id.empty() ? "-" : session.key_id);
  }
  answer.text = table_of(head, rows);
  return answer;
}

std::vector<std::string> row_of(const muster::GroupInfo& group) {
  const bool forms = group.epoch == 0;
  std::string waits_in = forms ? "forms" : "-";
  if (!forms && group.round != 0) {
    waits_in = "round " + std::to_string(group.round) + " for " + text_of(group.round_age);
  }
  return {printable(group.name), forms ? "-" : std::to_string(group.epoch),
          std::to_string(group.live) + "/" + std::to_string(group.world_size),
          std::to_string(group.candidates), std::move(waits_in)};
}

Result<Answer> run_groups(Run& run) {
  const auto groups = muster::inspect_groups(run.store, run.left());
  if (!groups) return groups.error();
  Answer answer;
  answer.document = muster::json::list_of(*groups);
  std::vector<std::vector<std::string>> rows;
  for (const muster::GroupInfo& group : *groups) {
    rows.push_back(row_of(group));
  }
  answer.text = table_of({"GROUP", "EPOCH", "RANKS", "CANDIDATES", "WAITS IN"}, rows);
  return answer;
}

Result<Answer> run_waiters(Run& run) {
  const auto waiters = muster::inspect_waiters(run.store, run.left());
  if (!waiters) return waiters.error();
  Answer answer;
  answer.document = muster::json::list_of(*waiters);
  for (const muster::WaiterInfo& waiter : *waiters) answer.text += explain(waiter) + '\n';
  return answer;
}

std::vector<std::string> row_of(const muster::GroupEvent& entry) {
  return {text_of(entry.age) + " ago", printable(entry.group),
          entry.epoch == 0 ? "-" : std::to_string(entry.epoch), explain(entry)};
}

Result<Answer> run_events(Run& run, const std::string& group) {
  const auto history = muster::inspect_history(run.store, group, 0, run.left());
  if (!history) return history.error();
  if (history->events.empty()) {
    if (auto absent = no_such_namespace(run, Kind::reads)) return *std::move(absent);
  }
  Answer answer;
  answer.document = json_of(*history);
  std::vector<std::vector<std::string>> rows;
  for (const muster::GroupEvent& entry : history->events) rows.push_back(row_of(entry));
  answer.text = table_of({"WHEN", "GROUP", "EPOCH", "WHAT"}, rows);
  if (history->forgotten != 0) {
    answer.text += "older ones, forgotten: " + std::to_string(history->forgotten) + '\n';
  }
  answer.text += "the server knows of the last " + text_of(history->known_for) + '\n';
  return answer;
}

void add_events(CLI::App& app, Chosen& chosen) {
  auto group = std::make_shared<std::string>();
  auto* events = app.add_subcommand(
      "events",
      "What happened to groups: formed, lost ranks and why, failed rounds, refused joins.");
  events->footer(
      footer_with("  musterctl events trainer\n"
                  "  musterctl --json events | jq '.events[] | select(.what == \"rank_lost\")'\n"));
  events->add_option("GROUP", *group, "its name; without it all of the namespace");
  events->callback([=, &chosen] {
    chosen = {[=](Run& run) { return run_events(run, *group); }, Kind::reads};
  });
}

void add(CLI::App& app, Chosen& chosen, const char* name, const char* help, const char* examples,
         Result<Answer> (*function)(Run& run)) {
  auto* command = app.add_subcommand(name, help);
  command->footer(footer_with(examples));
  command->callback([&chosen, function] { chosen = {function, Kind::reads}; });
}

}  // namespace

void add_list_commands(CLI::App& app, Chosen& chosen) {
  add_list(app, chosen);
  add(app, chosen, "status", "Prints the state of the server: limits and counts.",
      "  musterctl status\n  musterctl --json status | jq -r .memory_bytes_max\n", run_status);
  add(app, chosen, "sessions", "Lists the processes that are connected, or may reconnect.",
      "  musterctl sessions --watch\n", run_sessions);
  add(app, chosen, "groups", "Lists the groups, and in which round their ranks wait.",
      "  musterctl groups\n  musterctl groups --watch=5s\n", run_groups);
  add(app, chosen, "waiters", "Lists the calls that wait: whose, for what, how long.",
      "  musterctl waiters\n  musterctl --json waiters | jq '.[] | select(.age_s > 60)'\n",
      run_waiters);
  add_events(app, chosen);
}

}  // namespace musterctl
