#pragma once

#include <string>

namespace musterrun {

/// How a process has ended.
struct ExitStatus {
  int exit_code = 0;  ///< its own; 128 and the signal's number, if one has ended it
  std::string text;   ///< "exited with 3", "was ended by SIGSEGV"
};

/// status  as wait() gives it
ExitStatus exit_status_of(int status);

/// "SIGTERM"; "signal 77" of one without a name.
std::string name_of_signal(int number);

}  // namespace musterrun
