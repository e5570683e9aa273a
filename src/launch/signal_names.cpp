#include "launch/signal_names.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "base/failure.h"
#include "muster/log.h"

namespace muster::launch {

namespace {

constexpr std::array<std::string_view, 32> names_of_signals{
    "",     "HUP",  "INT",  "QUIT", "ILL",    "TRAP",   "ABRT",  "BUS",  "FPE",  "KILL", "USR1",
    "SEGV", "USR2", "PIPE", "ALRM", "TERM",   "STKFLT", "CHLD",  "CONT", "STOP", "TSTP", "TTIN",
    "TTOU", "URG",  "XCPU", "XFSZ", "VTALRM", "PROF",   "WINCH", "IO",   "PWR",  "SYS"};
// The C library keeps the first two for itself.
constexpr int signal_real_time_min = 34;
constexpr int signal_real_time_max = 64;
constexpr int signal_child = 17;
constexpr int signal_stop = 19;

std::optional<int> signal_of(std::string_view name) {
  if (name.substr(0, 3) == "SIG") name.remove_prefix(3);
  if (name.empty()) return {};
  for (std::size_t i = 1; i < names_of_signals.size(); ++i)
    if (names_of_signals[i] == name) return static_cast<int>(i);
  return {};
}

}  // namespace

std::string name_of_signal(int signal) {
  if (signal > 0 && signal < static_cast<int>(names_of_signals.size()))
    return "SIG" + std::string(names_of_signals[static_cast<std::size_t>(signal)]);
  if (signal == signal_real_time_min) return "SIGRTMIN";
  if (signal > signal_real_time_min && signal <= signal_real_time_max)
    return "SIGRTMIN+" + std::to_string(signal - signal_real_time_min);
  return "signal " + std::to_string(signal);
}

Result<std::vector<int>> signals_of(std::string_view list) {
  std::vector<int> signals;
  for (bool is_last = false; !is_last;) {
    const std::size_t comma = list.find(',');
    is_last = comma == list.npos;
    const std::string_view name = list.substr(0, comma);
    if (!is_last) list.remove_prefix(comma + 1);
    const std::optional<int> signal = signal_of(name);
    if (!signal) {
      return base::failure(ErrorCode::invalid_argument,
                           "'" + printable(name.substr(0, 64)) +
                               "' names no signal: write a list such as SIGTERM,SIGINT,SIGUSR1");
    }
    if (*signal == signal_kill || *signal == signal_stop || *signal == signal_child) {
      return base::failure(ErrorCode::invalid_argument,
                           name_of_signal(*signal) + " cannot be passed on to the ranks");
    }
    if (std::find(signals.begin(), signals.end(), *signal) == signals.end())
      signals.push_back(*signal);
  }
  return signals;
}

bool ends_job(int signal) {
  return signal == signal_terminate || signal == signal_interrupt || signal == signal_hang_up ||
         signal == signal_quit;
}

}  // namespace muster::launch
