#pragma once

#include <string>
#include <variant>
#include <vector>

#include "launch/options.h"
#include "launch/placement.h"

namespace musterrun {

inline constexpr int exit_usage = 2;

/// What is to be said in place of starting anything.
struct Exit {
  int code = 0;
  std::string text;
};

struct CommandLine {
  muster::launch::LaunchOptions options;
  muster::launch::Placement placement;
  std::vector<std::string> notices;  ///< of options that have no effect here
};

/// Reads the options, and for those that are not given the environment: MUSTERRUN_NAME, PET_NAME
/// (torchrun's), and the variables that composer reads.
std::variant<CommandLine, Exit> read_command_line(int argc, char** argv);

}  // namespace musterrun
