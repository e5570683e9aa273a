#include <memory>
#include <vector>

#include "commands.h"
#include "input.h"
#include "support/units.h"

// The commands for one key, and those that scripts use most; the other calls of a store are in
// store_commands.cpp.

namespace musterctl {
namespace {

using muster::Duration;
using muster::Result;

void add_get(CLI::App& app, Chosen& chosen) {
  auto key = std::make_shared<std::string>();
  auto wait = std::make_shared<bool>(false);
  auto* get = app.add_subcommand("get", "Prints the value of a key, byte for byte.");
  get->footer(
      footer_with("  musterctl get config\n"
                  "  musterctl get --wait --timeout 2min rank0/address\n"));
  get->add_option("KEY", *key, "any bytes")->required();
  get->add_flag("-w,--wait", *wait, "wait for the key until the timeout");
  get->callback([=, &chosen] {
    chosen.kind = *wait ? Kind::waits : Kind::reads;
    chosen.command = [=](Run& run) -> Result<Answer> {
      auto value = run.store.get(*key, *wait ? run.left() : Duration{0});
      if (!value) return std::move(value).error();
      return value_of(run, *std::move(value));
    };
  });
}

struct SetArguments {
  std::string key;
  std::string value;
  muster::SetOptions options;
};

Result<Answer> run_set(Run& run, const SetArguments& arguments) {
  std::string value = arguments.value;
  if (auto unreadable = read_if_dash(value, run)) return *std::move(unreadable);
  const auto set = run.store.set(arguments.key, value, arguments.options, run.left());
  if (!set.has_value()) return set.error();
  Answer answer;
  answer.document = {{"applied", *set}};
  if (!*set) {
    answer.complaint = "the key is there already; nothing was changed";
    answer.exit_code = exit_refused;
  }
  return answer;
}

void add_set(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<SetArguments>();
  auto* set = app.add_subcommand("set", "Sets a key.");
  set->footer(
      footer_with("  musterctl set config \"$(cat job.json)\"\n"
                  "  musterctl set --ttl 1h --only-if-absent lock/build \"$HOSTNAME\"\n"
                  "  musterctl set model - < model.bin\n"
                  "  musterctl set flag -- --verbose      a value that begins with \"-\"\n"));
  set->add_option("KEY", arguments->key, "any bytes")->required();
  set->add_option("VALUE", arguments->value, "\"-\": from standard input")->required();
  add_duration(*set, "--ttl", "time to live; without it the key stays",
               [arguments](Duration ttl) { arguments->options.ttl = ttl; });
  set->add_flag("--only-if-absent", arguments->options.only_if_absent,
                "fail when the key is there");
  set->callback(
      [=, &chosen] { chosen.command = [=](Run& run) { return run_set(run, *arguments); }; });
}

void add_add(CLI::App& app, Chosen& chosen) {
  auto key = std::make_shared<std::string>();
  auto delta = std::make_shared<std::string>("1");
  auto* add = app.add_subcommand("add", "Adds to a number and prints the sum.");
  add->footer(footer_with("  musterctl add restarts\n  musterctl add slots -2\n"));
  add->add_option("KEY", *key, "a decimal number; one that is absent counts as 0")->required();
  add->add_option("DELTA", *delta, "signed 64-bit")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return tools::parse_signed_number(text) ? ""
                                                    : '"' + text + "\" is no signed 64-bit number";
          },
          "INT"))
      ->capture_default_str();
  add->callback([=, &chosen] {
    chosen.command = [=](Run& run) -> Result<Answer> {
      const auto sum =
          run.store.add(*key, tools::parse_signed_number(*delta).value_or(0), run.left());
      if (!sum) return sum.error();
      return Answer{{{"value", *sum}}, std::to_string(*sum) + '\n', "", exit_ok};
    };
  });
}

Result<Answer> run_remove(Run& run, const std::vector<std::string>& keys) {
  const auto removed = run.store.multi_remove(keys, run.left());
  if (!removed) return removed.error();
  Answer answer;
  answer.document = {{"removed", *removed}};
  if (*removed < keys.size()) {
    answer.complaint = std::to_string(keys.size() - *removed) + " of " +
                       std::to_string(keys.size()) + " keys were not there";
    answer.exit_code = exit_absent;
  }
  return answer;
}

void add_remove(CLI::App& app, Chosen& chosen) {
  auto keys = std::make_shared<std::vector<std::string>>();
  auto* remove = app.add_subcommand("rm", "Removes keys.");
  remove->footer(footer_with("  musterctl rm config rank0/address\n"));
  remove->add_option("KEY", *keys, "any bytes")->required();
  remove->callback(
      [=, &chosen] { chosen.command = [=](Run& run) { return run_remove(run, *keys); }; });
}

Result<Answer> run_wait(Run& run, const std::vector<std::string>& keys) {
  const auto there = run.store.wait(keys, run.left());
  if (!there) return there.error();
  return Answer{{{"present", keys.size()}}, "", "", exit_ok};
}

void add_wait(CLI::App& app, Chosen& chosen) {
  auto keys = std::make_shared<std::vector<std::string>>();
  auto* wait = app.add_subcommand("wait", "Waits until all keys exist, or until the timeout.");
  wait->footer(footer_with("  musterctl wait --timeout 10min rank0/ready rank1/ready\n"));
  wait->add_option("KEY", *keys, "any bytes")->required();
  wait->callback([=, &chosen] {
    chosen = {[=](Run& run) { return run_wait(run, *keys); }, Kind::waits};
  });
}

}  // namespace

void add_key_commands(CLI::App& app, Chosen& chosen) {
  add_get(app, chosen);
  add_set(app, chosen);
  add_add(app, chosen);
  add_remove(app, chosen);
  add_wait(app, chosen);
}

}  // namespace musterctl
