#include "given.h"

#include <algorithm>

#include "base/secret/unshown.h"
#include "settings.h"
#include "support/nearest.h"
#include "support/quotes.h"

namespace musterd {
namespace {

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string last_of(const std::vector<std::string>& values) {
  return values.empty() ? "nothing" : tools::in_quotes(values.back());
}

std::vector<std::string> names_of_settings() {
  std::vector<std::string> names;
  for (const Setting& setting : settings()) names.push_back(setting.name);
  return names;
}

/// As it was typed, or as a flag.
std::string where_of(const Configuration& configuration, const std::string& name) {
  const auto given = configuration.given.find(name);
  return given != configuration.given.end() ? given->second : "--" + name;
}

/// Replaces `word` where it stands by itself.
void replace_word(std::string& text, const std::string& word, const std::string& by) {
  const auto is_of_word = [&text](std::size_t at) {
    return at < text.size() && (text[at] == '_' || (text[at] >= 'a' && text[at] <= 'z'));
  };
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at)) {
    const bool is_alone = !is_of_word(at - 1) && !is_of_word(at + word.size());
    if (is_alone) text.replace(at, word.size(), by);
    at += is_alone ? by.size() : word.size();
  }
}

/// returns  what is given without what it belongs to; empty: nothing
std::string missing_for_http(const Configuration& configuration) {
  const auto is_given = [&](const char* name) { return configuration.given.contains(name); };
  for (const char* name : {"http-host", "http-tokens", "http-cert", "http-key", "http-client-ca"})
    if (is_given(name) && !is_given("http"))
      return where_of(configuration, name) + ": it needs --http HOST:PORT";
  for (const char* name : {"http-key", "http-client-ca"})
    if (is_given(name) && !is_given("http-cert"))
      return where_of(configuration, name) + ": it needs --http-cert FILE";
  return {};
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
    const std::string where =
        muster::base::shown_unless_secret(path) + ":" + std::to_string(number);
    const auto equals = line.find('=');
    if (equals == std::string::npos) return wrong(where + ": not of the form \"name = value\"");
    const std::string name = trimmed(line.substr(0, equals));
    const Setting* const setting = find_setting(name);
    if (setting == nullptr)
      return wrong(where + ": there is no setting " + tools::in_quotes(name) +
                   tools::did_you_mean(name, names_of_settings()));
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
  configuration.server.log_level = muster::LogLevel::info;
  configuration.server.listen = {find_setting("listen")->fallback};
  for (const auto& [name, given] : chosen) {
    const Setting& setting = *find_setting(name);
    configuration.given[name] = given.where;
    configuration.values[name] = given.values;
    for (const std::string& value : given.values) {
      const auto refused = setting.form == "FILE"
                               ? muster::base::refuse_secret_path(given.where, value)
                               : muster::base::refuse_secret(given.where, value);
      if (refused) return wrong(refused->detail);
    }
    if (!given.values.empty() && setting.apply(given.values, configuration)) continue;
    return wrong(given.where + ": " + last_of(given.values) + " is no " + setting.valid);
  }
  const std::string missing = missing_for_http(configuration);
  if (!missing.empty()) return wrong(missing);
  return configuration;
}

Exit refusal_of(const Configuration& configuration, const muster::Error& error) {
  if (error.detail.starts_with("address ")) {
    return wrong(where_of(configuration, "listen") + ": " + error.detail);
  }
  if (error.detail.starts_with("the listening socket ")) {
    return wrong(where_of(configuration, "listen-fd") + ": " + error.detail);
  }
  const std::string& credentials = configuration.server.credentials_file;
  if (!credentials.empty() && error.detail.starts_with(credentials + ": ")) {
    return wrong(where_of(configuration, "credentials") + ": " + error.detail);
  }
  std::string why = error.detail;
  replace_word(why, "credentials_file", where_of(configuration, "credentials"));
  replace_word(why, "certificate_file", where_of(configuration, "tls-certificate"));
  replace_word(why, "certificate_key_file", where_of(configuration, "tls-key"));
  replace_word(why, "client_authorities_file", where_of(configuration, "tls-client-authorities"));
  for (const Setting& setting : settings()) {
    std::string option = setting.name;  // as ServerOptions calls it
    std::replace(option.begin(), option.end(), '-', '_');
    replace_word(why, option, where_of(configuration, setting.name));
  }
  return wrong(why);
}

}  // namespace musterd
