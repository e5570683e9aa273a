#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "muster/inspect.h"

// The namespaces of a server, which no other command sees from its own.

namespace musterctl {
namespace {

using muster::Result;

/// The name as a shell takes it.
std::string shown(const std::string& name) { return name.empty() ? "\"\"" : printable(name); }

/// The session that asks makes the namespace, if there is none: then there is nothing else in it.
bool is_only_of_this_session(const muster::NamespaceInfo& info) {
  return info.sessions <= 1 && info.keys == 0 && info.groups == 0 && info.memory_bytes == 0;
}

Result<Answer> run_namespaces(Run& run) {
  const auto namespaces = muster::inspect_namespaces(run.store, run.left());
  if (!namespaces) return namespaces.error();
  Answer answer;
  answer.document = muster::json::list_of(*namespaces);
  std::vector<std::vector<std::string>> rows;
  for (const muster::NamespaceInfo& info : *namespaces) {
    rows.push_back({shown(info.name), std::to_string(info.keys), std::to_string(info.memory_bytes),
                    std::to_string(info.groups), std::to_string(info.sessions),
                    info.made_by.empty() ? "-" : printable(info.made_by),
                    info.idle ? text_of(*info.idle) : "-"});
  }
  answer.text =
      table_of({"NAMESPACE", "KEYS", "BYTES", "GROUPS", "SESSIONS", "MADE BY", "IDLE"}, rows);
  return answer;
}

/// Each by itself: one that is refused keeps no other. The first refusal decides the exit code.
Result<Answer> run_drop(Run& run, const std::vector<std::string>& names) {
  Answer answer;
  answer.document = Json::array();
  for (const std::string& name : names) {
    const auto dropped = run.store.drop_namespace(name, run.left());
    Json json;
    add_bytes(json, "namespace", name);
    if (dropped) {
      json["removed"] = *dropped;
      answer.text += shown(name) + ": " + std::to_string(*dropped) +
                     (*dropped == 1 ? " key was removed\n" : " keys were removed\n");
    } else {
      Answer refused = answer_of(dropped.error(), Kind::changes);
      json["error"] = refused.document["error"];
      answer.complaint += (answer.complaint.empty() ? "" : "\nmusterctl: ") + refused.complaint;
      if (answer.exit_code == exit_ok) answer.exit_code = refused.exit_code;
    }
    answer.document.push_back(std::move(json));
  }
  return answer;
}

}  // namespace

std::optional<Answer> no_such_namespace(Run& run, Kind kind) {
  const std::string& name = run.common.name_space;
  if (name.empty()) return std::nullopt;  // the default one is always there
  const auto namespaces = muster::inspect_namespaces(run.store, run.left());
  if (!namespaces) return std::nullopt;
  const auto own = std::find_if(namespaces->begin(), namespaces->end(),
                                [&](const auto& info) { return info.name == name; });
  if (own == namespaces->end() || !is_only_of_this_session(*own)) return std::nullopt;
  const auto history = muster::inspect_history(run.store, {}, 0, run.left());
  if (!history || !history->events.empty() || history->forgotten != 0) return std::nullopt;
  muster::Error error;
  error.code = muster::ErrorCode::not_found;
  error.detail = "there is no namespace " + quoted_name(name) + " at " +
                 printable(run.common.server) + ": musterctl namespaces lists those that there are";
  Answer answer = answer_of(error, kind);
  answer.complaint = std::move(error.detail);
  return answer;
}

void add_namespace_commands(CLI::App& app, Chosen& chosen) {
  auto dropped = std::make_shared<std::vector<std::string>>();
  auto* command =
      app.add_subcommand("namespaces", "Lists the namespaces of the server, or drops some.");
  command->footer(
      footer_with("  musterctl namespaces\n"
                  "  musterctl namespaces --drop job7 job8\n"
                  "  musterctl --json namespaces | jq -r '.[] | select(.idle_s > 3600) | "
                  ".namespace'\n"));
  command
      ->add_option("--drop", *dropped,
                   "remove these with all of their keys, unless somebody is in them")
      ->type_name("NAME");
  command->callback([=, &chosen] {
    if (dropped->empty()) {
      chosen = {run_namespaces, Kind::reads};
      return;
    }
    chosen.role = muster::Role::supervisor;
    chosen.command = [=](Run& run) { return run_drop(run, *dropped); };
  });
}

}  // namespace musterctl
