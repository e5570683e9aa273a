#include "flags.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include <CLI/CLI.hpp>

#include "base/secret/unshown.h"
#include "given.h"
#include "settings.h"
#include "support/command_line.h"

// Flags, environment and file are each read into the same form; then every setting takes its text
// from the first of the three that has one.

namespace musterd {
namespace {

constexpr const char* description =
    "Serves keys and groups to the processes of this machine, or of other machines if that is "
    "allowed. It keeps all data in memory: when it stops, the data is lost, and its clients are "
    "told "
    "so.";

constexpr const char* footer =
    R"(Durations are written as 500ms, 15s, 2min or 1h; a number alone is seconds. Bytes are
written as 4096, 64KiB, 16MiB or 1GiB.
Each flag can also be given as an environment variable (--session-timeout: MUSTER_SESSION_TIMEOUT)
or in the file that --config (MUSTER_CONFIG) names, as lines of the form "session-timeout = 15s";
"#" begins a comment, "listen" may be repeated. A flag wins over the environment, that over the
file. A variable MUSTER_... that nothing reads is told in the log. One line per address goes to the
standard output: "musterd listening on HOST:PORT", and one for --http.
SIGTERM and SIGINT end it in order, its clients are told; a second one ends it at once. SIGHUP ends
nothing: the file of settings, the credentials, and the tokens and the certificate of --http are
read again, and what can change while it runs does.

Exit codes:
  0  stopped in order, or printed what was asked for
  1  the system refused something, such as random numbers, without which nothing is served;
     or memory was out while it served and what it kept is lost
  2  a flag, a variable, a line of the file or a limit is wrong
  3  another program listens on an address
  4  an address is not loopback and neither --credentials nor --allow-unauthenticated was given, or
     the system does not permit it)";

GivenByName read_environment() {
  GivenByName given;
  for (const Setting& setting : settings()) {
    const char* const text = std::getenv(setting.variable().c_str());
    if (text == nullptr) continue;
    Given& entry = given[setting.name];
    entry.where = setting.variable();
    if (setting.kind != Setting::Kind::values) {
      entry.values = {std::string(muster::base::without_line_end(text))};
      continue;
    }
    std::istringstream words(text);  // several are separated by spaces or commas
    for (std::string part; std::getline(words, part, ',');) {
      std::istringstream pieces(part);
      for (std::string word; pieces >> word;) entry.values.push_back(word);
    }
  }
  return given;
}

struct Flags {
  GivenByName given;
  std::string file;
};

std::variant<Flags, Exit> read_flags(int argc, const char* const* argv) {
  CLI::App app(description, "musterd");
  app.footer(footer);
  app.get_formatter()->column_width(44);
  app.set_version_flag("--version", "musterd " MUSTER_VERSION);
  Flags flags;
  app.add_option("--config", flags.file, "a file with further settings")
      ->envname("MUSTER_CONFIG")
      ->type_name("FILE");
  std::map<std::string, std::vector<std::string>> values;
  std::map<std::string, CLI::Option*> options;
  for (const Setting& setting : settings()) {
    CLI::Option*& option = options[setting.name];
    if (setting.kind == Setting::Kind::on_off) {
      option = app.add_flag(setting.flag(), setting.help);
      continue;
    }
    option = app.add_option(setting.flag(), values[setting.name], setting.help);
    option->expected(1)->type_name(setting.form)->default_str(setting.fallback);
    if (setting.kind == Setting::Kind::values) {
      option->take_all();
    } else {
      option->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return wrong(tools::complaint_of(app, error));
    std::ostringstream out;
    app.exit(error, out, out);
    return Exit{exit_ok, out.str()};
  }
  for (const auto& [name, option] : options) {
    if (option->count() == 0) continue;
    const bool is_switch = find_setting(name)->kind == Setting::Kind::on_off;
    flags.given[name] = {is_switch ? std::vector<std::string>{"true"} : values[name], "--" + name};
  }
  return flags;
}

}  // namespace

std::variant<Configuration, Exit> read_configuration(int argc, const char* const* argv) {
  auto flags = read_flags(argc, argv);
  if (auto* const exit = std::get_if<Exit>(&flags)) return std::move(*exit);
  auto& from_flags = std::get<Flags>(flags);
  GivenByName chosen = std::move(from_flags.given);
  chosen.merge(read_environment());
  if (!from_flags.file.empty()) {
    std::ifstream file(from_flags.file);
    if (const auto refused = muster::base::refuse_secret_path("--config", from_flags.file))
      return wrong(refused->detail);
    if (!file)
      return wrong("cannot read the configuration file " +
                   muster::base::shown_unless_secret(from_flags.file));
    auto given = read_settings(file, from_flags.file);
    if (auto* const exit = std::get_if<Exit>(&given)) return std::move(*exit);
    chosen.merge(std::get<GivenByName>(given));
  }
  auto understood = configuration_of(chosen);
  if (auto* const configuration = std::get_if<Configuration>(&understood)) {
    configuration->file = from_flags.file;
  }
  return understood;
}

}  // namespace musterd
