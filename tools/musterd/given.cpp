#include "given.h"

#include "settings.h"

namespace musterd {
namespace {

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string quoted(const std::vector<std::string>& values) {
  return values.empty() ? "nothing" : "\"" + values.back() + "\"";
}

}  // namespace

Exit wrong(const std::string& why) {
  return {exit_usage, "musterd: " + why + "\nRun with --help for more information.\n"};
}

std::variant<GivenByName, Exit> read_settings(std::istream& file, const std::string& path) {
  GivenByName given;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const std::string where = path + ":" + std::to_string(number);
    const auto equals = line.find('=');
    if (equals == std::string::npos) return wrong(where + ": not of the form \"name = value\"");
    const std::string name = trimmed(line.substr(0, equals));
    const Setting* const setting = find_setting(name);
    if (setting == nullptr) return wrong(where + ": there is no setting \"" + name + "\"");
    Given& entry = given[name];
    if (!entry.values.empty() && setting->kind != Setting::Kind::values) {
      return wrong(where + ": " + name + " is given a second time");
    }
    entry.values.push_back(trimmed(line.substr(equals + 1)));
    entry.where = where + ": " + name;
  }
  return given;
}

std::variant<Configuration, Exit> configuration_of(const GivenByName& chosen) {
  if (chosen.contains("listen") && chosen.contains("listen-fd")) {
    return wrong(chosen.at("listen-fd").where + " and " + chosen.at("listen").where +
                 " exclude each other");
  }
  Configuration configuration;
  configuration.server.standalone = true;
  configuration.server.listen = {find_setting("listen")->fallback};
  for (const auto& [name, given] : chosen) {
    const Setting& setting = *find_setting(name);
    if (!given.values.empty() && setting.apply(given.values, configuration)) continue;
    return wrong(given.where + ": " + quoted(given.values) + " is no " +
                 (setting.form.empty() ? "switch (true or false)" : setting.form));
  }
  return configuration;
}

}  // namespace musterd
