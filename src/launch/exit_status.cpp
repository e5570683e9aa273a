#include "launch/exit_status.h"

#include "launch/signal_names.h"

namespace muster::launch {

// As Linux writes a status: the signal in the lowest seven bits, whether there is a core in the
// eighth, the code above.
ExitStatus exit_status_of(int wait_status) {
  ExitStatus status;
  const int signal = wait_status & 0x7f;
  if (signal == 0) {
    status.code = (wait_status >> 8) & 0xff;
    status.text = "exited with " + std::to_string(status.code);
    return status;
  }
  status.code = 128 + signal;
  status.text = "was ended by " + name_of_signal(signal);
  if ((wait_status & 0x80) != 0) status.text += " (core dumped)";
  if (signal == signal_kill) status.text += ": memory may have been short (see dmesg)";
  return status;
}

int exit_code_of(const ExitStatus& first_failure, Compat compat) {
  if (compat == Compat::torchrun) return first_failure.code == 0 ? 0 : 1;
  return first_failure.code;
}

}  // namespace muster::launch
