#include "launch/command.h"

#include <string_view>

#include "launch/expansion.h"

namespace muster::launch {

std::vector<std::string> command_of(const LaunchOptions& options, const Variables& variables) {
  const std::string& program = options.program.front();
  constexpr std::string_view suffix = ".py";
  const bool is_script =
      program.size() > suffix.size() &&
      program.compare(program.size() - suffix.size(), suffix.size(), suffix) == 0;
  const bool is_module = options.form == ProgramForm::module;
  std::vector<std::string> command;
  if (is_module || (options.form == ProgramForm::automatic && is_script)) {
    std::string python = expanded("$PYTHON_EXEC", variables);
    command.push_back(python.empty() || python == "$PYTHON_EXEC" ? "python3" : python);
    command.emplace_back("-u");
    if (is_module) command.emplace_back("-m");
  }
  command.push_back(program);
  for (std::size_t index = 1; index < options.program.size(); ++index) {
    const std::string& argument = options.program[index];
    command.push_back(options.expands_arguments ? expanded(argument, variables) : argument);
  }
  return command;
}

}  // namespace muster::launch
