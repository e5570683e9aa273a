#include "command_line.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/secret/unshown.h"
#include "conclusion.h"
#include "option.h"
#include "support/command_line.h"
#include "support/nearest.h"
#include "support/quotes.h"
#include "support/units.h"

// CLI11 cuts the words into options and program. What an option says is its last value, else that
// of its variables. Each is taken by itself, then all are understood together (conclusion.h).

namespace musterrun {
namespace {

using muster::launch::Compat;
using muster::launch::LaunchOptions;
using muster::launch::Variables;

constexpr const char* description =
    "Starts the ranks of a job on this node, and ends with how they have ended.\n"
    "musterrun [OPTION...] PROGRAM [ARGUMENT...]";

constexpr const char* footer =
    R"(Options stand before the program; what stands behind it is the program's own. A program whose
name ends in .py is run by Python ($PYTHON_EXEC, else that of the virtual environment of this
program, else python3). Each option may be written with underscores (--max_restarts), and as
--option VALUE or --option=VALUE. Durations are written as 500ms, 15s, 2min or 1h; a number alone
is seconds.
An option that is not given is taken from the environment: --max-restarts from
MUSTERRUN_MAX_RESTARTS, else from PET_MAX_RESTARTS.

Exit codes:
  0      all ranks have exited with 0, or what was asked for is printed
  1      the job could not begin or go on, such as for nodes that did not come or were lost; or it
         has succeeded, and some of its output is lost
  2      an option or a variable is wrong, or what two nodes were told contradicts each other
  126    the program cannot be executed
  127    there is no such program
  128+N  signal N has ended the first rank that failed, or told the job to end
  other  that of the first rank that failed; with --compat torchrun every failure of a rank or its
         program is 1

Examples:
  musterrun -n 4 train.py --lr 0.1
  musterrun -n 8 --nnodes 2 --rendezvous head:29400 --job-id tuning-7 -m pkg.train)";

/// Names each option once, in the spelling with dashes.
class OneSpelling : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    if (is_positional) return CLI::Formatter::make_option_name(option, is_positional);
    std::string names;
    const auto add = [&](const std::string& name) { names += (names.empty() ? "" : ",") + name; };
    for (const std::string& letter : option->get_snames()) add("-" + letter);
    for (const std::string& name : option->get_lnames())
      if (name.find('_') == name.npos) add("--" + name);
    return names;
  }
};

/// What an option says, and which spelling or variable of it.
struct Said {
  std::string value;
  std::string where;
};

struct Arguments {
  std::map<std::string, Said> said;
  std::vector<std::string> program;
};

std::string letters_of(const Option& option, Compat compat) {
  return option.letters + (compat == Compat::composer ? option.letters_of_composer : "");
}

std::map<std::string, CLI::Option*> add_options(CLI::App& app, Compat compat) {
  std::map<std::string, CLI::Option*> added;
  for (const Option& option : all_options()) {
    std::string names;
    for (const char letter : letters_of(option, compat)) names += std::string("-") + letter + ",";
    for (const std::string& spelling : option.spellings()) names += spelling + ",";
    names.pop_back();
    CLI::Option*& entry = added[option.name()];
    if (option.is_switch()) {
      entry = app.add_flag(names, option.help);
      continue;
    }
    entry = app.add_option(names, option.help)->expected(1)->type_name(option.form);
    entry->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)->default_str(option.fallback);
  }
  return added;
}

/// The option that a word names, and as what; null: none.
struct Typed {
  const Option* option = nullptr;
  std::string name;
};

Typed typed_by(const std::string& word, Compat compat) {
  for (const Option& option : all_options()) {
    for (const std::string& spelling : option.spellings())
      if (word.substr(0, word.find('=')) == spelling) return {&option, spelling};
    const bool is_letter = word.size() > 1 && word[0] == '-' && word[1] != '-' &&
                           letters_of(option, compat).find(word[1]) != std::string::npos;
    if (is_letter) return {&option, word.substr(0, 2)};
  }
  return {};
}

/// As what each option was typed, the last time.
///
/// words  those before the program
std::map<std::string, std::string> typed_names(const std::vector<std::string>& words,
                                               Compat compat) {
  std::map<std::string, std::string> names;
  for (const std::string& word : words)
    if (const Typed typed = typed_by(word, compat); typed.option != nullptr)
      names[typed.option->name()] = typed.name;
  return names;
}

/// CLI11 would take the next word as the value of "--option="; returns what is wrong.
std::string complaint_of_empty_value(const std::vector<std::string>& words, Compat compat) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--" || word.empty() || word[0] != '-') break;
    const Typed typed = typed_by(word, compat);
    if (typed.option == nullptr || typed.option->is_switch()) continue;
    if (word == typed.name + "=") return typed.name + " needs a " + typed.option->form;
    if (word == typed.name) ++i;  // its value
  }
  return {};
}

std::string complaint_of_unknown(const std::string& word, Compat compat) {
  const std::string flag = word.substr(0, word.find('='));
  std::vector<std::string> known = {"--help", "--version"};
  for (const Option& option : all_options()) {
    const bool is_of_composer = flag.size() > 1 && flag[1] != '-' &&
                                option.letters_of_composer.find(flag[1]) != std::string::npos;
    if (compat == Compat::torchrun && is_of_composer) {
      return tools::in_quotes(flag) +
             " is no option of musterrun with --compat torchrun; write --" + option.names.back();
    }
    for (std::string& spelling : option.spellings()) known.push_back(std::move(spelling));
  }
  return tools::in_quotes(flag) + " is no option of musterrun" + tools::did_you_mean(flag, known);
}

/// What CLI11 left: the program, unless it begins with an option that nobody knows.
std::variant<Arguments, Exit> with_program(Arguments arguments, std::vector<std::string> words,
                                           Compat compat) {
  if (!words.empty() && words.front() == "--") {
    words.erase(words.begin());
  } else if (!words.empty() && words.front().size() > 1 && words.front()[0] == '-') {
    return wrong_usage(complaint_of_unknown(words.front(), compat));
  }
  arguments.program = std::move(words);
  return arguments;
}

std::variant<Arguments, Exit> read_arguments(int argc, const char* const* argv, Compat compat) {
  CLI::App app(description, "musterrun");
  app.formatter(std::make_shared<OneSpelling>());
  app.get_formatter()->column_width(44);
  app.footer(footer);
  app.set_version_flag("--version", "musterrun " MUSTER_VERSION);
  app.prefix_command();
  const auto added = add_options(app, compat);
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const std::string complaint = complaint_of_empty_value(words, compat);
  if (!complaint.empty()) return wrong_usage(complaint);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return wrong_usage(tools::complaint_of(app, error));
    std::ostringstream out;
    app.exit(error, out, out);
    return Exit{exit_ok, out.str()};
  }
  words.resize(words.size() - app.remaining_size());
  auto names = typed_names(words, compat);
  Arguments arguments;
  for (const Option& option : all_options()) {
    const CLI::Option& found = *added.at(option.name());
    if (found.count() == 0) continue;
    std::string& name = names.try_emplace(option.name(), "--" + option.name()).first->second;
    std::string value = found.results().back();
    // "-n=2", as Python's argparse takes it; CLI11 knows "-n2" and "-n 2".
    if (name.size() == 2 && value.size() > 1 && value.front() == '=') value.erase(0, 1);
    arguments.said[option.name()] = {std::move(value), std::move(name)};
  }
  return with_program(std::move(arguments), app.remaining(), compat);
}

std::string in_capitals(const std::string& name) {
  std::string text;
  for (const char letter : name) {
    const bool is_small = letter >= 'a' && letter <= 'z';
    text += is_small ? static_cast<char>(letter - 'a' + 'A') : letter == '-' ? '_' : letter;
  }
  return text;
}

/// What the variables say of options that were not given; an empty one says nothing.
void add_variables(Arguments& arguments, const Variables& environment) {
  for (const Option& option : all_options()) {
    for (const std::string prefix : {"MUSTERRUN_", "PET_"}) {
      for (const std::string& name : option.names) {
        const std::string variable = prefix + in_capitals(name);
        const std::string* const value = muster::launch::find_variable(environment, variable);
        if (value != nullptr && !value->empty())
          arguments.said.try_emplace(option.name(), Said{*value, variable});
      }
    }
  }
}

/// Returns what is wrong; empty: nothing.
std::string take_all(const Arguments& arguments, Asked& to) {
  for (const Option& option : all_options()) {
    const auto said = arguments.said.find(option.name());
    if (said == arguments.said.end()) continue;
    const auto& [value, where] = said->second;
    const bool is_path = option.form == "DIR" || option.form == "FORMAT";
    const auto refused = is_path ? muster::base::refuse_secret_path(where, value)
                                 : muster::base::refuse_secret(where, value);
    if (refused) return refused->detail;
    if (option.is_switch()) {
      const auto is_on = tools::parse_switch(value);
      if (!is_on) return where + ": " + no(value, "switch; write true or false");
      if (!*is_on) continue;
    }
    const std::string complaint = option.take(value, where, to);
    if (!complaint.empty()) return where + ": " + complaint;
    to.options.given[option.name()] = where;
  }
  return {};
}

bool is_torchrun(const Arguments& arguments, const Variables& environment) {
  Arguments with_variables = arguments;
  add_variables(with_variables, environment);
  const auto said = with_variables.said.find("compat");
  return said != with_variables.said.end() && said->second.value == "torchrun";
}

}  // namespace

Exit wrong_usage(const std::string& why) {
  return {exit_usage, "musterrun: " + why + " (--help lists the options)\n"};
}

std::variant<LaunchOptions, Exit> read_command_line(int argc, const char* const* argv,
                                                    const Variables& environment) {
  auto read = read_arguments(argc, argv, Compat::composer);
  if (const auto* const arguments = std::get_if<Arguments>(&read);
      arguments != nullptr && is_torchrun(*arguments, environment))
    read = read_arguments(argc, argv, Compat::torchrun);
  if (auto* const exit = std::get_if<Exit>(&read)) return std::move(*exit);
  auto& arguments = std::get<Arguments>(read);
  add_variables(arguments, environment);

  Asked asked;
  asked.options.program.words = arguments.program;
  if (!arguments.program.empty()) {
    const std::string& program = arguments.program.front();
    if (const auto refused = muster::base::refuse_secret_path("the program", program))
      return wrong_usage(refused->detail);
  }
  std::string complaint = take_all(arguments, asked);
  if (complaint.empty()) complaint = conclude(asked, environment);
  if (!complaint.empty()) return wrong_usage(complaint);
  return std::move(asked.options);
}

}  // namespace musterrun
