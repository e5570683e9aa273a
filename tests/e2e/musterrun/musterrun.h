#pragma once

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "support/process.h"

namespace muster::test {

constexpr int exit_usage = 2;

/// What musterrun printed.
struct Launched {
  int exit_code = -1;
  std::string output;
  std::string errors;

  bool has(const std::string& line) const {
    return ("\n" + output).find("\n" + line + "\n") != std::string::npos;
  }
  bool tells(const std::string& part) const { return errors.find(part) != std::string::npos; }
};

using LaunchVariables = std::map<std::string, std::string>;

/// musterrun, in an environment without what would say where ranks are. An empty variable says
/// nothing.
inline Launched musterrun(const std::vector<std::string>& arguments,
                          const LaunchVariables& variables = {}) {
  Process::Options options;
  options.command = {std::getenv("MUSTERRUN")};
  options.command.insert(options.command.end(), arguments.begin(), arguments.end());
  for (const char* name : {"LOCAL_WORLD_SIZE", "WORLD_SIZE", "BASE_RANK", "NODE_RANK",
                           "MASTER_ADDR", "MASTER_PORT", "CUDA_VISIBLE_DEVICES", "PYTHON_EXEC"})
    options.environment[name] = "";
  for (const auto& [name, value] : variables) options.environment[name] = value;
  Process process(options);
  Launched launched;
  launched.output = process.read_output();
  launched.errors = process.read_errors();
  launched.exit_code = process.wait().exit_code;
  return launched;
}

/// The same with --dry-run: what would be run.
inline Launched dry_run(std::vector<std::string> arguments, const LaunchVariables& variables = {}) {
  arguments.insert(arguments.begin(), "--dry-run");
  return musterrun(arguments, variables);
}

}  // namespace muster::test
