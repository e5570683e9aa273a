#include "command_line.h"

#include <signal.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>

#include "devices.h"
#include "option_table.h"
#include "support/command_line.h"
#include "support/nearest.h"
#include "support/quotes.h"
#include "support/units.h"

namespace musterrun {

using namespace muster::launch;

namespace {

Exit refuse(const std::string& why) {
  return {exit_usage, "musterrun: " + why + "\nmusterrun --help has the options\n"};
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string with_underscores(std::string name) {
  std::replace(name.begin() + 2, name.end(), '-', '_');
  return name;
}

/// Those of a row, as CLI11 takes them.
std::string all_names(const OptionRow& row) {
  std::string names;
  for (const std::string& name : split(row.names)) {
    names += (names.empty() ? "" : ",") + name;
    const std::string other = name.size() > 2 ? with_underscores(name) : name;
    if (other != name) names += "," + other;
  }
  return names;
}

/// Its value in the environment, and where; nothing: it has none.
std::optional<std::pair<std::string, std::string>> in_environment(const OptionRow& row) {
  for (const char* const prefix : {"MUSTERRUN_", "PET_"}) {
    for (const std::string& name : split(row.names)) {
      if (name.size() < 3) continue;
      std::string variable = prefix + with_underscores(name).substr(2);
      std::transform(variable.begin(), variable.end(), variable.begin(),
                     [](unsigned char letter) { return std::toupper(letter); });
      const char* const value = std::getenv(variable.c_str());
      if (value != nullptr && *value != '\0') return std::pair(variable, std::string(value));
    }
  }
  return {};
}

/// A variable that composer reads, as a number.
///
/// problem  is set if it is none
std::optional<int> number_of_variable(const char* name, std::string& problem) {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text == '\0') return {};
  const auto number = tools::parse_number(text);
  if (number && *number <= 1'000'000) return static_cast<int>(*number);
  problem = std::string(name) + ": " + tools::in_quotes(text) + " is no number from 0 on";
  return {};
}

/// returns  what is wrong; empty: nothing
std::string read_composers_variables(LaunchOptions& options) {
  std::string problem;
  const auto fill = [&problem](std::optional<int>& option, const char* name) {
    if (!option) option = number_of_variable(name, problem);
  };
  const auto local_size = number_of_variable("LOCAL_WORLD_SIZE", problem);
  const auto world_size = number_of_variable("WORLD_SIZE", problem);
  if (!options.world_size && world_size != local_size) options.world_size = world_size;
  fill(options.base_rank, "BASE_RANK");
  fill(options.node_rank, "NODE_RANK");
  const bool is_alone = options.world_size.value_or(0) <= options.process_count;
  if (is_alone) return problem;  // MASTER_ADDR and MASTER_PORT may be of another job
  fill(options.master_port, "MASTER_PORT");
  const char* const host = std::getenv("MASTER_ADDR");
  if (!options.master_addr && host != nullptr && *host != '\0') options.master_addr = host;
  return problem;
}

/// returns  what is wrong; empty: nothing
std::string count_processes(const Given& given, int& count) {
  const std::string& text = given.process_count;
  const bool is_torchrun = given.options.compat == Compat::torchrun;
  if (text.empty() && is_torchrun) return count = 1, std::string();
  if (text.empty()) {
    std::string problem;
    const auto local_size = number_of_variable("LOCAL_WORLD_SIZE", problem);
    count = std::max(1, local_size ? *local_size : count_gpus());
    return problem;
  }
  if (text == "gpu") {
    count = count_gpus();
    return count > 0 ? "" : "--nproc gpu: no GPU is seen here; see CUDA_VISIBLE_DEVICES";
  }
  if (text == "xpu") return "--nproc xpu: give the number of processes";
  if (text == "cpu") return count = count_processors(), std::string();
  if (text == "auto") {
    count = count_gpus();
    if (count == 0) count = count_processors();
    return {};
  }
  const auto number = tools::parse_number(text);
  if (!number || *number > 100'000)
    return "--nproc: " + tools::in_quotes(text) + " is none of auto, gpu, cpu, and no number";
  if (*number < 1) return "the nproc must be 1 or greater, not 0";
  count = static_cast<int>(*number);
  return {};
}

std::string settle(Given& given) {
  LaunchOptions& options = given.options;
  if (given.is_module && given.is_command)
    return "-m (--module) and -c (--no-python) contradict each other: give one of them";
  if (given.is_module) options.form = ProgramForm::module;
  if (given.is_command) options.form = ProgramForm::command;
  if (options.compat == Compat::torchrun) options.expands_arguments = false;
  if (std::string problem = count_processes(given, options.process_count); !problem.empty())
    return problem;
  if (options.signals.empty()) options.signals = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
  if (options.rendezvous.empty()) {
    if (options.nodes.min != options.nodes.max || (options.nodes.max > 1 && !options.node_rank))
      return "--nnodes " + given.node_count + ": give --rendezvous HOST:PORT, where nodes meet";
    return read_composers_variables(options);
  }
  if (options.base_rank || options.world_size)
    return "--base_rank and --world_size number nodes by hand, and with --rendezvous nodes are "
           "numbered where they meet: give one of both";
  if (options.job_id.empty()) {
    return "--rendezvous: give --job-id NAME, the same on all nodes and for no other job at that "
           "time";
  }
  return {};
}

using ReadOptions = std::vector<std::pair<const OptionRow*, CLI::Option*>>;

ReadOptions add_options(CLI::App& app) {
  ReadOptions options;
  for (const OptionRow& row : option_rows()) {
    const std::string names = all_names(row);
    CLI::Option* const option = row.value.empty()
                                    ? app.add_flag(names, row.help)
                                    : app.add_option(names, row.help)->type_name(row.value);
    option->take_last();  // a script may add to the options of another one
    options.emplace_back(&row, option);
  }
  return options;
}

/// returns  what is wrong; empty: nothing
std::string take_options(const ReadOptions& options, Given& given) {
  for (const auto& [row, option] : options) {
    std::string value;
    std::string where = split(row->names).back();
    if (option->count() > 0) {
      if (!row->value.empty()) value = option->results().back();
    } else if (const auto found = in_environment(*row)) {
      where = found->first;
      value = found->second;
      if (row->value.empty() && (value == "0" || value == "false" || value == "False")) continue;
    } else {
      continue;
    }
    if (std::string wrong = row->take(given, value); !wrong.empty()) return where + ": " + wrong;
  }
  return {};
}

/// What CLI11 left over is the program, or an option that it does not know.
///
/// returns  what is wrong; empty: nothing
std::string take_program(std::vector<std::string> left, Given& given) {
  if (!left.empty() && left.front() == "--") left.erase(left.begin());
  if (left.empty()) return "give the program that is to be run";
  const bool is_option = left.front().size() > 1 && left.front().front() == '-';
  given.options.program = std::move(left);
  if (!is_option) return {};
  std::vector<std::string> known;
  for (const OptionRow& row : option_rows())
    for (const std::string& name : split(row.names)) known.push_back(name);
  const std::string& option = given.options.program.front();
  return "there is no option " + tools::in_quotes(option) + tools::did_you_mean(option, known);
}

/// Of composer alone.
std::string refuse_short_names(const std::vector<std::string>& words, std::size_t program_size) {
  for (std::size_t index = 0; index + program_size < words.size(); ++index)
    for (const char* const name : {"-n", "-c", "-v"})
      if (words[index] == name)
        return "with --compat torchrun there is no option \"" + words[index] + "\"";
  return {};
}

}  // namespace

std::variant<CommandLine, Exit> read_command_line(int argc, char** argv) {
  CLI::App app(
      "Starts the processes of a job on this node, and ends all of them together.\n"
      "musterrun [OPTIONS] PROGRAM [ARGUMENTS...]; docs/musterrun.md has everything.",
      "musterrun");
  app.prefix_command();
  app.set_version_flag("--version", "musterrun " MUSTER_VERSION);
  const ReadOptions options = add_options(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Exit{0, app.help()};
  } catch (const CLI::CallForVersion&) {
    return Exit{0, std::string("musterrun ") + MUSTER_VERSION + "\n"};
  } catch (const CLI::ParseError& error) {
    return refuse(tools::complaint_of(app, error));
  }
  Given given;
  std::string wrong = take_options(options, given);
  if (wrong.empty()) wrong = take_program(app.remaining(), given);
  if (wrong.empty() && given.options.compat == Compat::torchrun)
    wrong = refuse_short_names({argv + 1, argv + argc}, given.options.program.size());
  if (wrong.empty()) wrong = settle(given);
  if (!wrong.empty()) return refuse(wrong);
  CommandLine line{std::move(given.options), {}, std::move(given.notices)};
  if (!line.options.rendezvous.empty()) return line;
  auto placed = place(line.options);
  if (!placed) return refuse(placed.error().detail);
  line.placement = *std::move(placed);
  if (line.placement.is_multi_node && line.options.max_restarts > 0)
    return refuse(
        "--max-restarts: nodes that are numbered by hand do not hear of each other; "
        "give --rendezvous");
  return line;
}

}  // namespace musterrun
