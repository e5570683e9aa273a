#include "support/command_line.h"

#include <vector>

#include "support/nearest.h"
#include "support/quotes.h"

// CLI11 finds what is wrong; its texts list arguments backwards, name types instead of values, and
// tell of an argument that is missing before the option that nobody knows.

namespace tools {
namespace {

/// The command that was named; the program itself if none was.
const CLI::App& command_of(const CLI::App& app) {
  const auto named = app.get_subcommands();
  return named.empty() ? app : *named.front();
}

std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  std::vector<const CLI::Option*> options;
  for (const CLI::Option* option : app.get_options()) options.push_back(option);
  const CLI::App& command = command_of(app);
  if (&command == &app) return options;
  for (const CLI::Option* option : command.get_options()) options.push_back(option);
  return options;
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : options_of(app)) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    for (const std::string& name : option->get_snames()) flags.push_back("-" + name);
  }
  return flags;
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());
  return commands;
}

std::string name_of(const CLI::App& app) {
  const CLI::App& command = command_of(app);
  return &command == &app ? app.get_name() : app.get_name() + " " + command.get_name();
}

/// An option that nobody knows; empty: there is none.
std::string unknown_option(const CLI::App& app, const std::vector<std::string>& extras) {
  for (const std::string& extra : extras) {
    if (extra.size() < 2 || extra[0] != '-') continue;
    const std::string flag = extra.substr(0, extra.find('='));
    std::string text = in_quotes(flag) + " is no option of " + name_of(app);
    const std::string meant = did_you_mean(flag, flags_of(app));
    if (!meant.empty() || command_of(app).get_options().empty()) return text + meant;
    return text + " (an argument that begins with \"-\" stands behind \"--\")";
  }
  return "";
}

/// Of an option that was given without its value, or too often.
std::string complaint_of_count(const CLI::App& app, const std::string& said) {
  for (const CLI::Option* option : options_of(app)) {
    const std::string name = option->get_name();
    if (!said.starts_with(name + ":")) continue;
    if (said.find("missing") != said.npos) return name + " needs a " + option->get_type_name();
    if (said.find("At Most") != said.npos) {
      return name + " is given " + std::to_string(option->count()) + " times";
    }
  }
  return said;
}

}  // namespace

std::string complaint_of(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> extras = app.remaining(true);
  const std::string unknown = unknown_option(app, extras);
  if (!unknown.empty()) return unknown;
  const std::vector<std::string> commands = commands_of(app);
  const bool lacks_command = !commands.empty() && app.get_subcommands().empty();
  if (!extras.empty() && lacks_command) {
    return in_quotes(extras.front()) + " is no command" + did_you_mean(extras.front(), commands);
  }
  if (!extras.empty()) {
    return in_quotes(extras.front()) + " is one argument too many for " + name_of(app);
  }
  if (lacks_command && error.get_name() == "RequiredError") return "a command is missing";
  if (error.get_name() == "RequiredError") return name_of(app) + ": " + error.what();
  if (error.get_name() == "ArgumentMismatch") return complaint_of_count(app, error.what());
  if (muster::base::looks_secret(error.what())) return in_quotes(error.what());
  return error.what();
}

}  // namespace tools
