#include "option.h"
#include "support/quotes.h"
#include "support/units.h"

// torchrun's options that mean little or nothing here. One that changes only how torchrun itself
// works is taken, and a notice says so; one that changes what the program sees is refused.

namespace musterrun {
namespace {

Take noticed(const std::string& notice) {
  return [notice](const std::string&, const std::string& where, Asked& to) {
    to.notice(where, notice);
    return std::string();
  };
}

Take refused(const std::string& reason) {
  return [reason](const std::string&, const std::string&, Asked&) { return reason; };
}

std::string take_interval(const std::string& value, const std::string& where, Asked& to) {
  if (!tools::parse_duration(value)) return no(value, "number of seconds");
  to.notice(where, "has no effect: the end of a rank is noticed at once");
  return {};
}

std::string take_start_method(const std::string& value, const std::string& where, Asked& to) {
  if (value != "spawn" && value != "fork" && value != "forkserver")
    return no(value, "start method; write spawn, fork or forkserver");
  to.notice(where, "has no effect: each rank is a new process of the program");
  return {};
}

std::string take_event_handler(const std::string& value, const std::string& where, Asked& to) {
  if (value != "null") to.notice(where, "has no effect: there are no events of torchelastic");
  return {};
}

std::string take_logs_specs(const std::string& value, const std::string&, Asked&) {
  if (value == "default") return {};
  return tools::in_quotes(value) +
         " is Python of torch, which musterrun does not load: use --log-dir, --redirects, --tee, "
         "--stdout and --stderr";
}

Take take_filters() {
  return noticed(
      "has no effect: lines are not copied to further files; search those of --log-dir instead");
}

}  // namespace

std::vector<Option> torchrun_options() {
  return {
      {{"run-path"},
       "",
       "",
       "",
       "the program is a Python script, whatever its name",
       "",
       switch_into(&Asked::is_run_path)},
      {{"monitor-interval"}, "", "", "SECONDS", "has no effect", "", take_interval},
      {{"start-method"}, "", "", "METHOD", "has no effect", "", take_start_method},
      {{"event-log-handler"}, "", "", "NAME", "has no effect", "", take_event_handler},
      {{"duplicate-stdout-filters"}, "", "", "LIST", "has no effect", "", take_filters()},
      {{"duplicate-stderr-filters"}, "", "", "LIST", "has no effect", "", take_filters()},
      {{"logs-specs"}, "", "", "NAME", "refused, but for \"default\"", "", take_logs_specs},
      {{"numa-binding"},
       "",
       "",
       "MODE",
       "refused: use numactl",
       "",
       refused("musterrun binds no rank to a NUMA node, and the program would run elsewhere than "
               "it was told: run it under numactl, with $LOCAL_RANK in its arguments")},
      {{"virtual-local-rank"},
       "",
       "",
       "",
       "refused: LOCAL_RANK is the local rank",
       "",
       refused("the program would see another LOCAL_RANK and CUDA_VISIBLE_DEVICES than it is told "
               "here: let it take device LOCAL_RANK")},
  };
}

}  // namespace musterrun
