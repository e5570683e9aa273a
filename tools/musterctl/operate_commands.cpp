#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "muster/operate.h"
#include "musterd/settings.h"
#include "support/quotes.h"
#include "support/units.h"

// What changes a running server: its settings, the end of sessions, its own end.

namespace musterctl {
namespace {

using muster::Duration;
using muster::Error;
using muster::ErrorCode;
using muster::Result;
using muster::SettingInfo;
using muster::SettingKind;

constexpr std::uint64_t silent_level = 4;

/// As musterd takes it in its file.
std::string text_of_value(SettingKind kind, std::uint64_t value) {
  switch (kind) {
    case SettingKind::duration: {
      constexpr std::uint64_t a_second = 1'000'000;
      constexpr std::uint64_t a_millisecond = 1'000;
      if (value % a_second == 0) return std::to_string(value / a_second) + "s";
      if (value % a_millisecond == 0) return std::to_string(value / a_millisecond) + "ms";
      return std::to_string(value) + "us";
    }
    case SettingKind::level: return json_of_value(kind, value).get<std::string>();
    case SettingKind::number:
    case SettingKind::bytes: break;
  }
  return std::to_string(value);
}

std::optional<std::uint64_t> parse_value(SettingKind kind, const std::string& text) {
  switch (kind) {
    case SettingKind::duration: {
      const auto duration = tools::parse_duration(text);
      if (!duration) return std::nullopt;
      return static_cast<std::uint64_t>(duration->count());
    }
    case SettingKind::level:
      for (std::uint64_t level = 0; level <= silent_level; ++level) {
        if (text == text_of_value(kind, level)) return level;
      }
      return std::nullopt;
    case SettingKind::bytes: return tools::parse_bytes(text);
    case SettingKind::number: break;
  }
  return tools::parse_number(text);
}

std::string forms_of(SettingKind kind) {
  switch (kind) {
    case SettingKind::duration: return std::string("duration (") + tools::duration_forms + ")";
    case SettingKind::level: return "level (write debug, info, warning, error or silent)";
    case SettingKind::bytes: return std::string("number of bytes (") + tools::bytes_forms + ")";
    case SettingKind::number: break;
  }
  return "whole number";
}

/// The server knows no setting of that name; musterd may have one that only its start reads.
Error of_start(Error error, const std::string& name) {
  const musterd::Setting* const setting = musterd::find_setting(name);
  if (error.code != ErrorCode::not_found || setting == nullptr) return error;
  error.code = ErrorCode::invalid_argument;
  error.detail = name + " is read when musterd starts; change it there and start it again";
  if (name == "credentials") error.detail = "the file of credentials is read again when it changes";
  return error;
}

/// The same, of one who asks what it is: servers tell numbers and levels.
Error of_start_alone(Error error, const std::string& name) {
  const musterd::Setting* const setting = musterd::find_setting(name);
  if (error.code != ErrorCode::not_found || setting == nullptr) return error;
  error.code = ErrorCode::invalid_argument;
  error.detail = "the server does not tell " + name + "; see " + setting->flag() + ", " +
                 setting->variable() + " or the file of --config where musterd was started";
  return error;
}

Result<Answer> run_config_get(Run& run, const std::string& name) {
  const auto settings = muster::inspect_settings(run.store, name, run.left());
  if (!settings) return of_start_alone(settings.error(), name);
  Answer answer;
  answer.document = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const SettingInfo& setting : *settings) {
    answer.document.push_back(json_of(setting));
    rows.push_back({setting.name, text_of_value(setting.kind, setting.value),
                    setting.used ? std::to_string(*setting.used) : "-",
                    setting.fixed_because.empty() ? "at once" : "restart"});
  }
  if (name.empty()) {
    answer.text = table_of({"SETTING", "VALUE", "USED", "CHANGES"}, rows);
  } else if (!rows.empty()) {
    answer.text = rows.front()[1] + '\n';
  }
  return answer;
}

Error not_understood(const SettingInfo& setting, const std::string& text) {
  Error error;
  error.code = ErrorCode::invalid_argument;
  error.operation = "set_setting";
  error.decided_by = "local";
  error.detail = setting.name + ": " + tools::in_quotes(text) + " is no " + forms_of(setting.kind);
  return error;
}

/// Asks for the setting first, which says how its value is written.
Result<Answer> run_config_set(Run& run, const std::string& name, const std::string& text) {
  const auto before = muster::inspect_settings(run.store, name, run.left());
  if (!before) return of_start(before.error(), name);
  if (before->empty()) return Answer{};
  const SettingInfo& old = before->front();
  const auto value = parse_value(old.kind, text);
  if (!value) return not_understood(old, text);
  const auto changed = muster::set_setting(run.store, name, *value, run.left());
  if (!changed) return changed.error();
  Answer answer;
  answer.document = json_of(*changed);
  answer.document["before"] = json_of_value(old.kind, old.value);
  answer.text = changed->name + ": " + text_of_value(old.kind, old.value) + " -> " +
                text_of_value(changed->kind, changed->value) + '\n';
  if (changed->used && *changed->used > changed->value) {
    answer.text += "in use: " + std::to_string(*changed->used) +
                   "; nothing is taken away, and more is refused until less is used\n";
  }
  return answer;
}

void add_config(CLI::App& app, Chosen& chosen) {
  auto* config = app.add_subcommand("config", "Shows or changes the settings of the server.");
  config->require_subcommand(1);
  config->footer(
      footer_with("  musterctl config get\n"
                  "  musterctl config set log-level debug\n"
                  "  musterctl config set memory-bytes-max 4GiB\n"));
  auto name = std::make_shared<std::string>();
  auto value = std::make_shared<std::string>();
  auto* get = config->add_subcommand("get", "Prints all settings, or the value of one.");
  get->add_option("NAME", *name, "as the flag of musterd, without the dashes before it");
  get->callback([=, &chosen] {
    chosen = {[=](Run& run) { return run_config_get(run, *name); }, Kind::reads};
  });
  auto* set = config->add_subcommand("set", "Changes one until the server ends.");
  set->add_option("NAME", *name, "as the flag of musterd, without the dashes before it")
      ->required();
  set->add_option("VALUE", *value, "as the flag of musterd takes it")->required();
  set->callback([=, &chosen] {
    chosen.role = muster::Role::supervisor;
    chosen.command = [=](Run& run) { return run_config_set(run, *name, *value); };
  });
}

void add_kill(CLI::App& app, Chosen& chosen) {
  auto whom = std::make_shared<std::string>();
  auto reason = std::make_shared<std::string>("an operator has ended it");
  auto* kill = app.add_subcommand("kill", "Ends a session, or all those of a process, at once.");
  kill->footer(
      footer_with("  musterctl sessions\n"
                  "  musterctl kill 17 \"it holds the lock\"\n"
                  "  musterctl kill 5f0c2ab1e97d4386a1b0c4d7e8f90123\n"));
  kill->add_option("WHOM", *whom, "the number of a session, or the id of a process")
      ->required()
      ->check(CLI::Validator(
          [](const std::string& text) {
            if (parse_process(text)) return std::string();
            const auto number = tools::parse_number(text);
            if (number && *number != 0) return std::string();
            return tools::in_quotes(text) +
                   " is no session (write its number) and no process (write 32 hexadecimal digits)";
          },
          ""));
  kill->add_option("REASON", *reason, "what its client and its groups are told")
      ->capture_default_str();
  kill->callback([=, &chosen] {
    chosen.role = muster::Role::supervisor;
    chosen.command = [=](Run& run) -> Result<Answer> {
      const auto process = parse_process(*whom);
      const auto ended =
          process ? muster::end_sessions_of(run.store, *process, *reason, run.left())
                  : muster::end_session(run.store, tools::parse_number(*whom).value_or(0), *reason,
                                        run.left());
      if (!ended) return ended.error();
      return Answer{
          {{"ended", *ended}},
          std::to_string(*ended) + (*ended == 1 ? " session was" : " sessions were") + " ended\n",
          "",
          exit_ok};
    };
  });
}

struct DrainArguments {
  std::optional<Duration> time_max;
  std::string reason;
  bool cancels = false;
};

Result<Answer> run_drain(Run& run, const DrainArguments& arguments) {
  if (arguments.cancels) {
    const auto cancelled = muster::cancel_drain(run.store, run.left());
    if (!cancelled) return cancelled.error();
    return Answer{{{"draining", false}}, "", "", exit_ok};
  }
  const auto left = muster::drain(run.store, arguments.time_max, arguments.reason, run.left());
  if (!left) return left.error();
  return Answer{{{"draining", true}, {"sessions", *left}},
                "no session begins any more; still there: " + std::to_string(*left) + '\n',
                "",
                exit_ok};
}

void add_drain(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<DrainArguments>();
  auto* drain = app.add_subcommand(
      "drain", "Lets no client in any more; musterd ends when all who are there have gone.");
  drain->footer(
      footer_with("  musterctl drain --for 10min \"a newer version\"\n"
                  "  musterctl drain --cancel\n"));
  add_duration(*drain, "--for", "then it ends, whoever is there; without it, it waits for all",
               [arguments](Duration time) { arguments->time_max = time; });
  drain->add_flag("--cancel", arguments->cancels, "let clients in again");
  drain->add_option("REASON", arguments->reason, "what clients are told that come");
  drain->callback([=, &chosen] {
    if (arguments->cancels && (arguments->time_max || !arguments->reason.empty())) {
      throw CLI::ValidationError("musterctl drain", "--cancel excludes --for and a reason");
    }
    chosen.role = muster::Role::supervisor;
    chosen.command = [=](Run& run) { return run_drain(run, *arguments); };
  });
}

}  // namespace

void add_operate_commands(CLI::App& app, Chosen& chosen) {
  add_config(app, chosen);
  add_kill(app, chosen);
  add_drain(app, chosen);
}

}  // namespace musterctl
