#include "exit_status.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

namespace musterrun {

std::string name_of_signal(int number) {
  const char* const name = ::sigabbrev_np(number);
  if (name != nullptr) return std::string("SIG") + name;
  return "signal " + std::to_string(number);
}

ExitStatus exit_status_of(int status) {
  if (WIFEXITED(status))
    return {WEXITSTATUS(status), "exited with " + std::to_string(WEXITSTATUS(status))};
  const int number = WTERMSIG(status);
  ExitStatus ended{128 + number, "was ended by " + name_of_signal(number)};
  if (WCOREDUMP(status)) ended.text += " (core dumped)";
  if (number == SIGKILL)
    ended.text += ": memory may have been short (see the kernel's log), or somebody killed it";
  return ended;
}

}  // namespace musterrun
