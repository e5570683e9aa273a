#pragma once

#include <string>
#include <variant>

#include "launch/options.h"
#include "launch/variables.h"

namespace musterrun {

/// There is nothing to launch: `text` was asked for (exit code 0), or says what is wrong (2).
struct Exit {
  int code = 0;
  std::string text;
};

enum ExitCode {
  exit_ok = 0,
  exit_usage = 2,
};

/// Understands the options before the program; what stands behind the program's name is its own.
///
/// An option that is not given is looked for in `environment`: as MUSTERRUN_NAME, as torchrun's
/// PET_NAME, and where composer reads a variable as that. What comes back fits together: where no
/// rendezvous is given, `placement_of` has accepted it.
std::variant<muster::launch::LaunchOptions, Exit> read_command_line(
    int argc, const char* const* argv, const muster::launch::Variables& environment);

/// Ends with exit_usage, and one line that says `why`.
Exit wrong_usage(const std::string& why);

}  // namespace musterrun
