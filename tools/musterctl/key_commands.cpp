#include <unistd.h>

#include <charconv>
#include <cmath>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "commands.h"
#include "output.h"

namespace musterctl {
namespace {

using muster::Duration;
using muster::ErrorCode;
using muster::Store;

Duration seconds(double value) {
  constexpr double longest_s = 30 * 24 * 3600;
  return Duration(std::llround(std::min(value, longest_s) * 1e6));
}

/// Reads all of `text`; what does not fit into T is no number.
template <class T>
std::optional<T> number(const std::string& text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

/// A value goes out as it is; on a terminal a line end follows.
void print_value(const std::string& value, const Common& common) {
  if (common.json) return print_json({{"value", value}});
  std::cout << value;
  if (::isatty(STDOUT_FILENO) == 1) std::cout << '\n';
  std::cout.flush();
}

std::string read_all(std::istream& in) {
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void add_get(CLI::App& app, Command& chosen) {
  auto key = std::make_shared<std::string>();
  auto wait = std::make_shared<bool>(false);
  auto* get = app.add_subcommand("get", "Prints the value of a key, byte for byte.");
  get->add_option("KEY", *key)->required();
  get->add_flag("-w,--wait", *wait, "wait for the key until the timeout");
  get->callback([=, &chosen] {
    chosen = [=](Store& store, const Common& common) {
      const auto value = store.get(*key, *wait ? common.timeout() : Duration{0});
      if (!value) return report(value.error());
      print_value(*value, common);
      return int{exit_ok};
    };
  });
}

struct SetArguments {
  std::string key;
  std::string value;
  double ttl_s = 0;
  bool only_if_absent = false;
};

int run_set(Store& store, const Common& common, const SetArguments& arguments) {
  muster::SetOptions options;
  options.only_if_absent = arguments.only_if_absent;
  if (arguments.ttl_s > 0) options.ttl = seconds(arguments.ttl_s);
  const std::string value = arguments.value == "-" ? read_all(std::cin) : arguments.value;
  const auto set = store.set(arguments.key, value, options);
  if (!set) return report(set.error());
  if (common.json) print_json({{"applied", *set}});
  if (!*set) {
    std::cerr << "musterctl: the key is there already; nothing was changed\n";
    return exit_failed;
  }
  return exit_ok;
}

void add_set(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<SetArguments>();
  auto* set = app.add_subcommand("set", "Sets a key.");
  set->add_option("KEY", arguments->key)->required();
  set->add_option("VALUE", arguments->value, "\"-\": from standard input")->required();
  set->add_option("--ttl", arguments->ttl_s, "time to live in seconds; without it the key stays")
      ->check(seconds_above_zero());
  set->add_flag("--only-if-absent", arguments->only_if_absent, "fail when the key is there");
  set->callback([=, &chosen] {
    chosen = [=](Store& store, const Common& common) { return run_set(store, common, *arguments); };
  });
}

void add_add(CLI::App& app, Command& chosen) {
  auto key = std::make_shared<std::string>();
  auto delta = std::make_shared<std::string>("1");
  auto* add = app.add_subcommand("add", "Adds to a number and prints the sum.");
  add->add_option("KEY", *key)->required();
  add->add_option("DELTA", *delta, "signed 64-bit")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return number<std::int64_t>(text) ? "" : '"' + text + "\" is no signed 64-bit number";
          },
          "INT"))
      ->capture_default_str();
  add->callback([=, &chosen] {
    chosen = [=](Store& store, const Common& common) {
      const auto sum = store.add(*key, *number<std::int64_t>(*delta));
      if (!sum) return report(sum.error());
      if (common.json) {
        print_json({{"value", *sum}});
      } else {
        std::cout << *sum << '\n';
      }
      return int{exit_ok};
    };
  });
}

int run_remove(Store& store, const Common& common, const std::vector<std::string>& keys) {
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  const auto removed = store.multi_remove(views);
  if (!removed) return report(removed.error());
  if (common.json) print_json({{"removed", *removed}});
  if (*removed == keys.size()) return exit_ok;
  std::cerr << "musterctl: " << keys.size() - *removed << " of " << keys.size()
            << " keys were not there\n";
  return exit_absent;
}

void add_remove(CLI::App& app, Command& chosen) {
  auto keys = std::make_shared<std::vector<std::string>>();
  auto* remove = app.add_subcommand("rm", "Removes keys.");
  remove->add_option("KEY", *keys)->required();
  remove->callback([=, &chosen] {
    chosen = [=](Store& store, const Common& common) { return run_remove(store, common, *keys); };
  });
}

void print_key(const muster::KeyInfo& info) {
  std::cout << info.value_bytes << '\t';
  if (info.ttl) {
    std::cout << static_cast<double>(info.ttl->count()) / 1e6 << " s";
  } else {
    std::cout << '-';
  }
  std::cout << '\t' << (info.bound ? "bound" : "-") << '\t' << info.key << '\n';
}

Json to_json(const muster::KeyInfo& info) {
  Json json = {{"key", info.key}, {"value_bytes", info.value_bytes}, {"bound", info.bound}};
  json["ttl_s"] = info.ttl ? Json(static_cast<double>(info.ttl->count()) / 1e6) : Json();
  return json;
}

int run_list(Store& store, const Common& common, const std::string& prefix) {
  Json all = Json::array();
  std::uint64_t cursor = 0;
  do {
    const auto page = store.list(prefix, cursor);
    if (!page) return report(page.error());
    for (const muster::KeyInfo& info : page->keys) {
      if (common.json) {
        all.push_back(to_json(info));
      } else {
        print_key(info);
      }
    }
    cursor = page->cursor;
  } while (cursor != 0);
  if (common.json) print_json(all);
  return exit_ok;
}

void add_list(CLI::App& app, Command& chosen) {
  auto prefix = std::make_shared<std::string>();
  auto* list = app.add_subcommand("ls", "Lists keys: bytes, time to live, binding, name.");
  list->add_option("PREFIX", *prefix, "only keys that begin with it");
  list->callback([=, &chosen] {
    chosen = [=](Store& store, const Common& common) { return run_list(store, common, *prefix); };
  });
}

void add_wait(CLI::App& app, Command& chosen) {
  auto keys = std::make_shared<std::vector<std::string>>();
  auto* wait = app.add_subcommand("wait", "Waits until all keys are there, or the timeout.");
  wait->add_option("KEY", *keys)->required();
  wait->callback([=, &chosen] {
    chosen = [=](Store& store, const Common& common) {
      const std::vector<std::string_view> views(keys->begin(), keys->end());
      const auto there = store.wait(views, common.timeout());
      return there ? int{exit_ok} : report(there.error());
    };
  });
}

int run_status(Store& store, const Common& common) {
  const auto status = store.status();
  if (!status) return report(status.error());
  if (common.json) {
    Json json = Json::object();
    for (const auto& [name, value] : *status) json[name] = value;
    print_json(json);
    return exit_ok;
  }
  std::size_t width = 0;
  for (const auto& field : *status) width = std::max(width, field.first.size());
  for (const auto& [name, value] : *status) {
    std::cout << name << std::string(width - name.size() + 2, ' ') << value << '\n';
  }
  return exit_ok;
}

void add_status(CLI::App& app, Command& chosen) {
  auto* status = app.add_subcommand("status", "What the server tells of itself: limits, counts.");
  status->callback([&chosen] { chosen = run_status; });
}

}  // namespace

Duration Common::timeout() const { return seconds(timeout_s); }

CLI::Validator seconds_above_zero() {
  return CLI::Validator(
      [](const std::string& text) {
        const auto value = number<double>(text);
        const bool is_good = value && *value > 0 && seconds(*value) > Duration::zero();
        return is_good ? "" : '"' + text + "\" is no number of seconds above zero";
      },
      "SECONDS");
}

void add_key_commands(CLI::App& app, Command& chosen) {
  add_get(app, chosen);
  add_set(app, chosen);
  add_add(app, chosen);
  add_remove(app, chosen);
  add_list(app, chosen);
  add_wait(app, chosen);
  add_status(app, chosen);
}

int report(const muster::Error& error) {
  std::cerr << "musterctl: " << error.message() << '\n';
  switch (error.code) {
    case ErrorCode::invalid_argument: return exit_usage;
    case ErrorCode::not_found:
    case ErrorCode::timed_out: return exit_absent;
    case ErrorCode::unavailable:
    case ErrorCode::protocol_error: return exit_unavailable;
    default: return exit_failed;
  }
}

}  // namespace musterctl
