#pragma once

#include <string>

#include "launch/options.h"

namespace muster::launch {

/// How a rank has ended.
struct ExitStatus {
  int code = 0;      ///< that the launcher ends with in its place: its own, or 128 and the signal
  std::string text;  ///< such as "exited with 3", "was ended by SIGSEGV (core dumped)"
};

/// Of a status as waitpid gives it for a process that has ended.
ExitStatus exit_status_of(int wait_status);

/// With what the launcher ends where this was the first failure; torchrun's is 1 for all.
int exit_code_of(const ExitStatus& first_failure, Compat compat);

}  // namespace muster::launch
