#include "launch/command.h"

#include <string_view>

#include "launch/expansion.h"

namespace muster::launch {

namespace {

bool is_python_file(std::string_view program) {
  constexpr std::string_view suffix = ".py";
  return program.size() > suffix.size() && program.substr(program.size() - suffix.size()) == suffix;
}

}  // namespace

std::vector<std::string> command_of(const LaunchOptions& options, const Variables& environment) {
  if (options.program.words.empty()) return {};
  const std::string& program = options.program.words.front();
  const bool is_module = options.program.form == ProgramForm::module;
  const bool is_script =
      options.program.form == ProgramForm::script ||
      (options.program.form == ProgramForm::automatic && is_python_file(program));
  std::vector<std::string> command;
  if (is_module || is_script) {
    const std::string* const python = find_variable(environment, "PYTHON_EXEC");
    // -u: what a rank prints is seen when it prints it.
    command = {python != nullptr && !python->empty() ? *python : options.program.python, "-u"};
  }
  if (is_module) command.emplace_back("-m");
  command.push_back(program);
  for (std::size_t i = 1; i < options.program.words.size(); ++i) {
    const std::string& argument = options.program.words[i];
    command.push_back(options.program.expands_arguments ? expanded(argument, environment)
                                                        : argument);
  }
  return command;
}

}  // namespace muster::launch
