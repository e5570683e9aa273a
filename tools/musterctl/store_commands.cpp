#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "commands.h"
#include "input.h"
#include "support/quotes.h"

// The calls of a store that key_commands.cpp has not: take, append, touch, compare_set, exists,
// those of many keys and of queues, and report_dead.

namespace musterctl {
namespace {

using muster::Duration;
using muster::Result;
using Keys = std::vector<std::string>;

std::vector<std::string_view> views_of(const Keys& keys) { return {keys.begin(), keys.end()}; }

void add_take(CLI::App& app, Chosen& chosen) {
  auto key = std::make_shared<std::string>();
  auto wait = std::make_shared<bool>(false);
  auto* take = app.add_subcommand("take", "Prints the value of a key and removes the key.");
  take->footer(footer_with("  musterctl take --wait --timeout 1h jobs/next\n"));
  take->add_option("KEY", *key, "any bytes")->required();
  take->add_flag("-w,--wait", *wait, "wait for the key until the timeout");
  take->callback([=, &chosen] {
    chosen.command = [=](Run& run) -> Result<Answer> {
      auto value = run.store.take(*key, *wait ? run.left() : Duration{0});
      if (!value) return std::move(value).error();
      return value_of(run, *std::move(value));
    };
  });
}

void add_append(CLI::App& app, Chosen& chosen) {
  auto key = std::make_shared<std::string>();
  auto suffix = std::make_shared<std::string>();
  auto* append = app.add_subcommand("append", "Appends to a value and prints its length.");
  append->footer(footer_with("  musterctl append events \"started \"\n"));
  append->add_option("KEY", *key, "any bytes; one that is absent counts as empty")->required();
  append->add_option("SUFFIX", *suffix, "\"-\": from standard input")->required();
  append->callback([=, &chosen] {
    chosen.command = [=](Run& run) -> Result<Answer> {
      std::string bytes = *suffix;
      if (auto unreadable = read_if_dash(bytes, run)) return *std::move(unreadable);
      const auto length = run.store.append(*key, bytes, run.left());
      if (!length) return length.error();
      return Answer{{{"value_bytes", *length}}, std::to_string(*length) + '\n', "", exit_ok};
    };
  });
}

Answer count_of(std::uint64_t count) {
  return Answer{{{"count", count}}, std::to_string(count) + '\n', "", exit_ok};
}

void add_queue_push(CLI::App& app, Chosen& chosen) {
  auto key = std::make_shared<std::string>();
  auto item = std::make_shared<std::string>();
  auto* push = app.add_subcommand("queue_push", "Puts an item into a key's queue.");
  push->footer(footer_with("  musterctl queue_push jobs \"build 7\"\n"));
  push->add_option("KEY", *key, "any bytes")->required();
  push->add_option("ITEM", *item, "\"-\": from standard input")->required();
  push->callback([=, &chosen] {
    chosen.command = [=](Run& run) -> Result<Answer> {
      std::string bytes = *item;
      if (auto unreadable = read_if_dash(bytes, run)) return *std::move(unreadable);
      const auto count = run.store.queue_push(*key, bytes, run.left());
      if (!count) return count.error();
      return count_of(*count);
    };
  });
}

void add_queue_pop(CLI::App& app, Chosen& chosen) {
  auto key = std::make_shared<std::string>();
  auto wait = std::make_shared<bool>(false);
  auto* pop =
      app.add_subcommand("queue_pop", "Prints the first item of a key's queue and removes it.");
  pop->footer(footer_with("  musterctl queue_pop --wait --timeout 1h jobs\n"));
  pop->add_option("KEY", *key, "any bytes")->required();
  pop->add_flag("-w,--wait", *wait, "wait for an item until the timeout");
  pop->callback([=, &chosen] {
    chosen.command = [=](Run& run) -> Result<Answer> {
      auto item = run.store.queue_pop(*key, *wait ? run.left() : Duration{0});
      if (!item) return std::move(item).error();
      return value_of(run, *std::move(item));
    };
  });
}

void add_queue_length(CLI::App& app, Chosen& chosen) {
  auto key = std::make_shared<std::string>();
  auto* length = app.add_subcommand("queue_length", "Prints how many items a key's queue has.");
  length->footer(footer_with("  musterctl queue_length jobs\n"));
  length->add_option("KEY", *key, "any bytes")->required();
  length->callback([=, &chosen] {
    chosen.command = [=](Run& run) -> Result<Answer> {
      const auto count = run.store.queue_length(*key, run.left());
      if (!count) return count.error();
      return count_of(*count);
    };
  });
}

void add_touch(CLI::App& app, Chosen& chosen) {
  auto key = std::make_shared<std::string>();
  auto ttl = std::make_shared<std::optional<Duration>>();
  auto* touch = app.add_subcommand("touch", "Gives a key a new time to live.");
  touch->footer(
      footer_with("  musterctl touch --ttl 1h lock/build\n"
                  "  musterctl touch config                 it stays until it is removed\n"));
  touch->add_option("KEY", *key, "any bytes")->required();
  add_duration(*touch, "--ttl", "time to live; without it the key stays",
               [ttl](Duration given) { *ttl = given; });
  touch->callback([=, &chosen] {
    chosen.command = [=](Run& run) -> Result<Answer> {
      const auto touched = run.store.touch(*key, *ttl, run.left());
      if (!touched) return touched.error();
      return Answer{{{"ttl_s", *ttl ? Json(seconds_of(**ttl)) : Json()}}, "", "", exit_ok};
    };
  });
}

struct CompareArguments {
  std::string key;
  std::string expected;
  std::string desired;
  muster::WriteOptions options;
};

Result<Answer> run_compare_set(Run& run, const CompareArguments& arguments) {
  std::string desired = arguments.desired;
  if (auto unreadable = read_if_dash(desired, run)) return *std::move(unreadable);
  const auto compared = run.store.compare_set(arguments.key, arguments.expected, desired,
                                              arguments.options, run.left());
  if (!compared.has_value()) return compared.error();
  Answer answer;
  answer.document = {{"applied", compared->applied}};
  if (compared->applied) return answer;
  if (compared->current) {
    add_bytes(answer.document, "value", *compared->current);
    answer.complaint = "the key has another value; nothing was changed";
  } else {
    answer.document["value"] = Json();
    answer.complaint = "the key is absent; nothing was changed";
  }
  answer.exit_code = exit_refused;
  return answer;
}

void add_compare_set(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<CompareArguments>();
  auto* compare = app.add_subcommand("compare_set", "Sets a key if it has the value that is told.");
  compare->footer(footer_with(
      "  musterctl compare_set leader \"$HOSTNAME\" nobody\n"
      "  musterctl set --only-if-absent leader \"$HOSTNAME\"   for a key that is absent\n"));
  compare->add_option("KEY", arguments->key, "any bytes")->required();
  compare->add_option("EXPECTED", arguments->expected, "the value that it must have")->required();
  compare->add_option("VALUE", arguments->desired, "\"-\": from standard input")->required();
  add_duration(*compare, "--ttl", "time to live; without it the key stays",
               [arguments](Duration ttl) { arguments->options.ttl = ttl; });
  compare->callback([=, &chosen] {
    chosen.command = [=](Run& run) { return run_compare_set(run, *arguments); };
  });
}

Result<Answer> run_exists(Run& run, const Keys& keys) {
  const auto views = views_of(keys);
  const auto found = run.store.multi_exists(views, run.left());
  if (!found) return found.error();
  Answer answer;
  answer.document = Json::array();
  for (std::size_t index = 0; index < keys.size(); ++index) {
    const bool is_there = (*found)[index];
    Json json;
    add_bytes(json, "key", keys[index]);
    json["exists"] = is_there;
    answer.document.push_back(std::move(json));
    if (is_there) continue;
    answer.text += printable(keys[index]) + " is absent\n";
    answer.exit_code = exit_absent;
  }
  return answer;
}

void add_exists(CLI::App& app, Chosen& chosen) {
  auto keys = std::make_shared<Keys>();
  auto* exists = app.add_subcommand("exists", "Tells which keys are absent.");
  exists->footer(footer_with("  musterctl exists rank0/ready rank1/ready && echo all\n"));
  exists->add_option("KEY", *keys, "any bytes")->required();
  exists->callback([=, &chosen] {
    chosen = {[=](Run& run) { return run_exists(run, *keys); }, Kind::reads};
  });
}

Result<Answer> run_multi_get(Run& run, const Keys& keys) {
  const auto views = views_of(keys);
  const auto values = run.store.multi_get(views, run.left());
  if (!values) return values.error();
  Answer answer;
  answer.document = Json::array();
  for (std::size_t index = 0; index < keys.size(); ++index) {
    const std::optional<std::string>& value = (*values)[index];
    Json json;
    add_bytes(json, "key", keys[index]);
    if (value) {
      add_bytes(json, "value", *value);
      answer.text += printable(keys[index]) + '\t' + printable(*value) + '\n';
    } else {
      json["value"] = Json();
      answer.exit_code = exit_absent;
    }
    answer.document.push_back(std::move(json));
  }
  return answer;
}

void add_multi_get(CLI::App& app, Chosen& chosen) {
  auto keys = std::make_shared<Keys>();
  auto* get = app.add_subcommand("multi_get", "Prints keys and values, all of the same instant.");
  get->footer(footer_with("  musterctl multi_get rank0/address rank1/address\n"));
  get->add_option("KEY", *keys, "any bytes")->required();
  get->callback([=, &chosen] {
    chosen = {[=](Run& run) { return run_multi_get(run, *keys); }, Kind::reads};
  });
}

struct MultiSetArguments {
  Keys words;  ///< key, value, key, value, ...
  muster::WriteOptions options;
};

Result<Answer> run_multi_set(Run& run, const MultiSetArguments& arguments) {
  std::vector<std::pair<std::string_view, std::string_view>> entries;
  for (std::size_t index = 0; index + 1 < arguments.words.size(); index += 2) {
    entries.emplace_back(arguments.words[index], arguments.words[index + 1]);
  }
  const auto set = run.store.multi_set(entries, arguments.options, run.left());
  if (!set) return set.error();
  return Answer{{{"set", entries.size()}}, "", "", exit_ok};
}

void add_multi_set(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<MultiSetArguments>();
  auto* set = app.add_subcommand("multi_set", "Sets several keys at the same instant.");
  set->footer(footer_with("  musterctl multi_set host trainer-0 port 29400\n"));
  set->add_option("KEY VALUE", arguments->words, "a value behind each key")->required();
  add_duration(*set, "--ttl", "time to live; without it the keys stay",
               [arguments](Duration ttl) { arguments->options.ttl = ttl; });
  set->callback([=, &chosen] {
    if (arguments->words.size() % 2 != 0) {
      throw CLI::ValidationError(
          "musterctl multi_set",
          "the last key, " + quoted_name(arguments->words.back()) + ", has no value");
    }
    chosen.command = [=](Run& run) { return run_multi_set(run, *arguments); };
  });
}

void add_report_dead(CLI::App& app, Chosen& chosen) {
  auto process = std::make_shared<std::string>();
  auto reason = std::make_shared<std::string>("an operator says so");
  auto* report = app.add_subcommand("report_dead", "Declares a process dead that is known to be.");
  report->footer(
      footer_with("  musterctl --json sessions | jq -r '.[] | .process + \" \" + .label'\n"
                  "  musterctl report_dead 5f0c2ab1e97d4386a1b0c4d7e8f90123 \"its host burns\"\n"));
  report->add_option("PROCESS", *process, "its id, of `--json sessions`")
      ->required()
      ->check(CLI::Validator(
          [](const std::string& text) {
            return parse_process(text)
                       ? ""
                       : tools::in_quotes(text) + " is no process (write 32 hexadecimal digits)";
          },
          ""));
  report->add_option("REASON", *reason, "what others are told")->capture_default_str();
  report->callback([=, &chosen] {
    chosen.role = muster::Role::supervisor;
    chosen.command = [=](Run& run) -> Result<Answer> {
      const auto id = parse_process(*process).value_or(muster::ProcessId{});
      const auto reported = run.store.report_dead(id, *reason, run.left());
      if (!reported) return reported.error();
      return Answer{{{"reported", *process}}, "", "", exit_ok};
    };
  });
}

}  // namespace

void add_store_commands(CLI::App& app, Chosen& chosen) {
  add_take(app, chosen);
  add_append(app, chosen);
  add_touch(app, chosen);
  add_compare_set(app, chosen);
  add_exists(app, chosen);
  add_multi_get(app, chosen);
  add_multi_set(app, chosen);
  add_queue_push(app, chosen);
  add_queue_pop(app, chosen);
  add_queue_length(app, chosen);
  add_report_dead(app, chosen);
}

}  // namespace musterctl
