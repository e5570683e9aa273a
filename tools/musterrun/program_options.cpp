#include <map>
#include <string>

#include "option.h"
#include "support/units.h"

// What is run, how many of it, and when a job has ended.

namespace musterrun {
namespace {

using muster::launch::Compat;
using muster::launch::LaunchOptions;

std::string take_process_count(const std::string& value, const std::string&, Asked& to) {
  if (value == "xpu") {
    return "\"xpu\" cannot be counted here: say how many processes there shall be, such as the "
           "number of XPUs";
  }
  if (value == "0") return "nproc must be 1 or greater, and is 0";
  if (value != "auto" && value != "gpu" && value != "cpu" && !process_count_in(value, 1))
    return no(value, "number of processes: nproc must be 1 to " + std::to_string(processes_max) +
                         ", or auto, gpu or cpu");
  to.process_count = value;
  return {};
}

std::string take_compat(const std::string& value, const std::string&, Asked& to) {
  if (value != "composer" && value != "torchrun")
    return no(value, "launcher to be compatible with; write composer or torchrun");
  to.compat = value == "torchrun" ? Compat::torchrun : Compat::composer;
  return {};
}

std::string take_no_expand(const std::string&, const std::string&, Asked& to) {
  to.options.program.expands_arguments = false;
  return {};
}

std::string take_signals(const std::string& value, const std::string&, Asked& to) {
  auto signals = muster::launch::signals_of(value);
  if (!signals) return signals.error().detail;
  to.options.signals = *std::move(signals);
  return {};
}

std::string take_pid_namespace(const std::string& value, const std::string&, Asked& to) {
  using muster::launch::PidNamespace;
  const std::map<std::string, PidNamespace> known = {{"auto", PidNamespace::automatic},
                                                     {"always", PidNamespace::always},
                                                     {"never", PidNamespace::never}};
  const auto found = known.find(value);
  if (found == known.end())
    return no(value, "choice of a PID namespace; write auto, always or never");
  to.options.pid_namespace = found->second;
  return {};
}

std::string take_exit_grace(const std::string& value, const std::string&, Asked& to) {
  const auto duration = tools::parse_duration(value);
  if (!duration) return no(value, std::string("duration (") + tools::duration_forms + ")");
  to.options.exit_grace = *duration;
  return {};
}

}  // namespace

std::vector<Option> program_options() {
  return {
      {{"nproc", "nproc-per-node"},
       "",
       "n",
       "COUNT",
       "how many processes run on this node: a number, gpu, cpu, or auto (GPUs if there are, else "
       "CPUs); without it LOCAL_WORLD_SIZE, else the number of GPUs, at least 1",
       "",
       take_process_count},
      {{"module", "module-mode"},
       "m",
       "",
       "",
       "the program is a Python module",
       "",
       switch_into(&Asked::is_module)},
      {{"command-mode", "no-python"},
       "",
       "c",
       "",
       "the program is run as it is, also if its name ends in .py",
       "",
       switch_into(&Asked::is_command)},
      {{"no-expand"},
       "",
       "",
       "",
       "$NAME, ${NAME} and ~ stay as they are in the program's arguments",
       "",
       take_no_expand},
      {{"compat"},
       "",
       "",
       "LAUNCHER",
       "torchrun: its defaults hold, and -n, -c and -v are no options",
       "composer",
       take_compat},
  };
}

std::vector<Option> ending_options() {
  using O = LaunchOptions;
  return {
      {{"max-restarts"},
       "",
       "",
       "NUMBER",
       "how often the job begins again after a failure",
       "0",
       number_into(field<&O::max_restarts>, 0)},
      {{"shutdown-timeout"},
       "",
       "",
       "DURATION",
       "how long ranks have from SIGTERM to SIGKILL; without it TORCH_ELASTIC_SHUTDOWN_TIMEOUT",
       "30s",
       duration_into(field<&O::shutdown_timeout>)},
      {{"exit-grace"},
       "",
       "",
       "DURATION",
       "how long the others may run on when one rank has exited with 0; without it as long as "
       "they like",
       "",
       take_exit_grace},
      {{"signals-to-handle"},
       "",
       "",
       "LIST",
       "the signals that ranks are told of; SIGTERM, SIGINT, SIGHUP and SIGQUIT end the job",
       "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
       take_signals},
      {{"pid-namespace"},
       "",
       "",
       "WHEN",
       "auto, always or never: ranks get a PID namespace, so that the kernel leaves nothing of "
       "them "
       "even if musterrun and its guardian are killed at once; auto: where musterrun may make one",
       "auto",
       take_pid_namespace},
      {{"dry-run"},
       "",
       "",
       "",
       "print what would be run, and with which variables, and end",
       "",
       switch_into(field<&O::dry_run>)},
      {{"verbose"}, "", "v", "", "say more", "", switch_into(field<&O::verbose>)},
  };
}

}  // namespace musterrun
