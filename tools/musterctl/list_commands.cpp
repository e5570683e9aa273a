#include <algorithm>
#include <memory>
#include <vector>

#include "bytes.h"
#include "commands.h"
#include "muster/inspect.h"
#include "why.h"

// The commands that list: keys and objects, the server's numbers, sessions, groups, waits.

namespace musterctl {
namespace {

using muster::Result;

std::string line_of(const muster::KeyInfo& info) {
  return std::to_string(info.value_bytes) + '\t' + (info.ttl ? text_of(*info.ttl) : "-") + '\t' +
         (info.bound ? "bound" : "-") + '\t' + printable(info.key) + '\n';
}

Json key_json(const muster::KeyInfo& info) {
  Json json;
  add_bytes(json, "key", info.key);
  json["value_bytes"] = info.value_bytes;
  json["bound"] = info.bound;
  json["ttl_s"] = info.ttl ? Json(seconds_of(*info.ttl)) : Json();
  return json;
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
      answer.document.push_back(key_json(info));
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

/// Numbers as numbers, as far as every reader of JSON has them exactly.
Json status_json(const std::string& name, const std::string& value) {
  constexpr std::size_t digits_max = 15;
  const bool is_text = name == "version" || name == "incarnation" || name == "namespace";
  const bool is_number = !is_text && !value.empty() && value.size() <= digits_max &&
                         value.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? Json(std::stoull(value)) : Json(value);
}

Result<Answer> run_status(Run& run) {
  const auto status = run.store.status(run.left());
  if (!status) return status.error();
  Answer answer;
  std::size_t width = 0;
  for (const auto& field : *status) width = std::max(width, field.first.size());
  answer.document = Json::object();
  for (const auto& [name, value] : *status) {
    answer.document[name] = status_json(name, value);
    answer.text += name + std::string(width - name.size() + 2, ' ') + printable(value) + '\n';
  }
  return answer;
}

Result<Answer> run_sessions(Run& run) {
  const auto sessions = muster::inspect_sessions(run.store, run.left());
  if (!sessions) return sessions.error();
  Answer answer;
  answer.document = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const muster::SessionInfo& session : *sessions) {
    Json json = {{"session", session.id}};
    add_process(json, session.process);
    json["connected"] = session.connected;
    json["silence_s"] = seconds_of(session.silence);
    json["groups"] = session.groups;
    json["waiting"] = session.waiting;
    answer.document.push_back(std::move(json));
    rows.push_back({std::to_string(session.id), printable(session.process.host),
                    std::to_string(session.process.pid), printable(session.process.label),
                    session.connected ? "connected" : "away", text_of(session.silence),
                    std::to_string(session.groups), std::to_string(session.waiting)});
  }
  answer.text =
      table_of({"SESSION", "HOST", "PID", "LABEL", "STATE", "SILENT", "GROUPS", "WAITING"}, rows);
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
  answer.document = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const muster::GroupInfo& group : *groups) {
    Json json;
    add_bytes(json, "group", group.name);
    json["state"] = group.epoch == 0 ? "forming" : "formed";
    json["epoch"] = group.epoch;
    json["world_size"] = group.world_size;
    json["live"] = group.live;
    json["candidates"] = group.candidates;
    json["round"] = group.round;
    json["round_age_s"] = seconds_of(group.round_age);
    answer.document.push_back(std::move(json));
    rows.push_back(row_of(group));
  }
  answer.text = table_of({"GROUP", "EPOCH", "RANKS", "CANDIDATES", "WAITS IN"}, rows);
  return answer;
}

Result<Answer> run_waiters(Run& run) {
  const auto waiters = muster::inspect_waiters(run.store, run.left());
  if (!waiters) return waiters.error();
  Answer answer;
  answer.document = Json::array();
  for (const muster::WaiterInfo& waiter : *waiters) {
    answer.document.push_back(json_of(waiter));
    answer.text += explain(waiter) + '\n';
  }
  return answer;
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
}

}  // namespace musterctl
