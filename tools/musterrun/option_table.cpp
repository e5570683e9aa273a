#include "option_table.h"

#include <signal.h>

#include <optional>
#include <utility>

#include "launch/log_names.h"
#include "support/quotes.h"
#include "support/units.h"

namespace musterrun {

using namespace muster::launch;

namespace {

using Take = std::function<std::string(Given&, const std::string&)>;

std::optional<int> count_in(const std::string& text) {
  const auto number = tools::parse_number(text);
  if (!number || *number > 1'000'000) return {};
  return static_cast<int>(*number);
}

template <class Member>
Take takes_count(Member member) {
  return [member](Given& given, const std::string& value) -> std::string {
    const auto count = count_in(value);
    if (!count) return tools::in_quotes(value) + " is no number from 0 on";
    given.options.*member = *count;
    return {};
  };
}

template <class Member>
Take takes_duration(Member member) {
  return [member](Given& given, const std::string& value) -> std::string {
    const auto duration = tools::parse_duration(value);
    if (!duration) return tools::in_quotes(value) + ": " + tools::duration_forms;
    given.options.*member = *duration;
    return {};
  };
}

template <class Member>
Take takes_text(Member member) {
  return [member](Given& given, const std::string& value) -> std::string {
    given.options.*member = value;
    return {};
  };
}

template <class Member>
Take takes_format(Member member) {
  return [member](Given& given, const std::string& value) -> std::string {
    if (const auto parsed = LogFormat::parse(value); !parsed) return parsed.error().detail;
    given.options.*member = value;
    return {};
  };
}

template <class Member>
Take takes_streams(Member member) {
  return [member](Given& given, const std::string& value) -> std::string {
    auto parsed = StreamChoice::parse(value);
    if (!parsed) return parsed.error().detail;
    given.options.*member = *std::move(parsed);
    return {};
  };
}

template <class Member>
Take sets(Member member) {
  return [member](Given& given, const std::string&) -> std::string {
    given.*member = true;
    return {};
  };
}

template <class Member>
Take sets_option(Member member, bool to = true) {
  return [member, to](Given& given, const std::string&) -> std::string {
    given.options.*member = to;
    return {};
  };
}

/// For what torchrun knows and musterrun does in another way anyway.
Take notices(std::string name, std::string why) {
  return [text = "--" + std::move(name) + " has no effect: " + std::move(why)](
             Given& given, const std::string&) -> std::string {
    given.notices.push_back(text);
    return {};
  };
}

Take refuses(std::string why) {
  return [why = std::move(why)](Given&, const std::string&) { return why; };
}

std::string take_backend(Given& given, const std::string& value) {
  if (value == "static" || value == "c10d") {
    given.notices.push_back("--rdzv-backend " + value +
                            ": nodes meet at a Muster server in any case");
    return {};
  }
  return tools::in_quotes(value) +
         ": nodes meet at a Muster server; start musterd, and give --rendezvous HOST:PORT";
}

std::string take_conf(Given& given, const std::string& value) {
  for (std::string left = value; !left.empty();) {
    const auto comma = left.find(',');
    const std::string part = left.substr(0, comma);
    left = comma == std::string::npos ? std::string() : left.substr(comma + 1);
    const auto equals = part.find('=');
    if (equals == std::string::npos)
      return tools::in_quotes(part) + " is not of the form KEY=VALUE";
    const std::string key = part.substr(0, equals);
    const bool is_last_call = key == "last_call_timeout";
    if (key != "join_timeout" && key != "timeout" && !is_last_call) {
      given.notices.push_back("--rdzv-conf: " + key + " has no effect");
      continue;
    }
    const auto duration = tools::parse_duration(part.substr(equals + 1));
    if (!duration) return tools::in_quotes(part) + ": " + tools::duration_forms;
    (is_last_call ? given.options.last_call : given.options.join_timeout) = *duration;
  }
  return {};
}

std::string take_signals(Given& given, const std::string& value) {
  constexpr std::pair<std::string_view, int> known[] = {{"SIGTERM", SIGTERM}, {"SIGINT", SIGINT},
                                                        {"SIGHUP", SIGHUP},   {"SIGQUIT", SIGQUIT},
                                                        {"SIGUSR1", SIGUSR1}, {"SIGUSR2", SIGUSR2}};
  given.options.signals.clear();
  for (std::string_view left = value;;) {
    const auto comma = left.find(',');
    const std::string_view name = left.substr(0, comma);
    bool is_known = false;
    for (const auto& [each, number] : known) {
      if (each != name) continue;
      given.options.signals.push_back(number);
      is_known = true;
    }
    if (!is_known)
      return tools::in_quotes(name) +
             " is none of SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2";
    if (comma == std::string_view::npos) return {};
    left.remove_prefix(comma + 1);
  }
}

std::string take_shown_ranks(Given& given, const std::string& value) {
  given.options.shown_local_ranks.clear();
  for (std::string left = value; !left.empty();) {
    const auto comma = left.find(',');
    const auto rank = count_in(left.substr(0, comma));
    if (!rank) return tools::in_quotes(value) + " is no list of local ranks, such as 0,2";
    given.options.shown_local_ranks.push_back(*rank);
    left = comma == std::string::npos ? std::string() : left.substr(comma + 1);
  }
  return {};
}

std::string take_rendezvous(Given& given, const std::string& value) {
  const auto colon = value.rfind(':');
  const bool has_port = colon != std::string::npos && colon > 0;
  const auto port = has_port ? count_in(value.substr(colon + 1)) : std::nullopt;
  if (value.empty()) return {};  // torchrun's default
  if (!port || *port < 1 || *port > 65535)
    return tools::in_quotes(value) + " is no HOST:PORT with a port from 1 to 65535";
  given.options.rendezvous = value;
  return {};
}

std::string take_compat(Given& given, const std::string& value) {
  if (value != "composer" && value != "torchrun")
    return tools::in_quotes(value) + " is neither composer nor torchrun";
  given.options.compat = value == "torchrun" ? Compat::torchrun : Compat::composer;
  return {};
}

std::string take_node_count(Given& given, const std::string& value) {
  const auto colon = value.find(':');
  const auto min = count_in(value.substr(0, colon));
  const auto max = colon == std::string::npos ? min : count_in(value.substr(colon + 1));
  if (!min || !max || *min < 1 || *max < *min)
    return tools::in_quotes(value) + " is no number of nodes, and no MIN:MAX";
  given.node_count = value;
  given.options.nodes = {*min, *max};
  return {};
}

std::vector<OptionRow> rows_of_the_program() {
  return {
      {"-n,--nproc,--nproc-per-node", "N|auto|gpu|cpu", "processes of this node",
       [](Given& given, const std::string& value) -> std::string {
         given.process_count = value;
         return {};
       }},
      {"-m,--module,--module-mode", "", "runs the program as a module of Python",
       sets(&Given::is_module)},
      {"-c,--command-mode,--no-python", "", "executes the program as it is",
       sets(&Given::is_command)},
      {"--no-expand", "", "leaves $NAME and ~ in arguments as they are",
       sets_option(&LaunchOptions::expands_arguments, false)},
      {"--compat", "composer|torchrun", "whose meaning options have that both know", take_compat},
      {"-v,--verbose", "", "says more", sets_option(&LaunchOptions::verbose)},
  };
}

std::vector<OptionRow> rows_of_numbered_nodes() {
  return {
      {"--world-size", "N", "processes of all nodes, where nodes are numbered by hand",
       takes_count(&LaunchOptions::world_size)},
      {"--base-rank", "N", "rank of this node's first process",
       takes_count(&LaunchOptions::base_rank)},
      {"--node-rank", "N", "this node's number", takes_count(&LaunchOptions::node_rank)},
      {"--master-addr", "HOST", "MASTER_ADDR of the ranks",
       takes_text(&LaunchOptions::master_addr)},
      {"--master-port", "PORT", "MASTER_PORT of the ranks",
       takes_count(&LaunchOptions::master_port)},
  };
}

std::vector<OptionRow> rows_of_meeting_nodes() {
  return {
      {"--rendezvous,--rdzv-endpoint", "HOST:PORT",
       "where nodes meet: a musterd, or an address of the first node", take_rendezvous},
      {"--nnodes", "N|MIN:MAX", "how many nodes meet", take_node_count},
      {"--job-id,--rdzv-id", "NAME", "the job's name, by which its nodes find each other",
       takes_text(&LaunchOptions::job_id)},
      {"--join-timeout", "TIME", "how long nodes are waited for (600s)",
       takes_duration(&LaunchOptions::join_timeout)},
      {"--last-call", "TIME",
       "with MIN nodes there, how long others are waited for after the last one (30s)",
       takes_duration(&LaunchOptions::last_call)},
      {"--scale-up", "", "a node that comes later ends the attempt, for a larger one",
       sets_option(&LaunchOptions::scale_up)},
      {"--rdzv-backend", "NAME", "accepted: static, c10d", take_backend},
      {"--rdzv-conf", "KEY=VALUE,...", "accepted: join_timeout, last_call_timeout", take_conf},
      {"--standalone", "", "accepted: a job of one node needs no other",
       [](Given&, const std::string&) { return std::string(); }},
  };
}

std::vector<OptionRow> rows_of_failures() {
  return {
      {"--max-restarts", "N", "how often all ranks are started again (0)",
       takes_count(&LaunchOptions::max_restarts)},
      {"--shutdown-timeout", "TIME", "from SIGTERM to SIGKILL (30s)",
       takes_duration(&LaunchOptions::shutdown_timeout)},
      {"--exit-grace", "TIME", "how long ranks may run when another one has ended well",
       takes_duration(&LaunchOptions::exit_grace)},
      {"--signals-to-handle", "NAME,...", "signals that are forwarded", take_signals},
  };
}

std::vector<OptionRow> rows_of_output() {
  return {
      {"--stdout", "FORMAT", "file for the standard output of local ranks above 0",
       takes_format(&LaunchOptions::stdout_format)},
      {"--stderr", "FORMAT", "the same for standard error",
       takes_format(&LaunchOptions::stderr_format)},
      {"--log-dir", "FOLDER", "keeps the output of all ranks, by attempt and local rank",
       takes_text(&LaunchOptions::log_dir)},
      {"-r,--redirects", "0-3|RANK:0-3,...", "which outputs go to files alone",
       takes_streams(&LaunchOptions::redirects)},
      {"-t,--tee", "0-3|RANK:0-3,...", "which outputs go to files, and are shown",
       takes_streams(&LaunchOptions::tee)},
      {"--local-ranks-filter", "RANK,...", "local ranks whose output is shown", take_shown_ranks},
      {"--role", "NAME", "ROLE_NAME of the ranks, and the prefix of lines",
       takes_text(&LaunchOptions::role)},
  };
}

std::vector<OptionRow> rows_of_torchrun_alone() {
  return {
      {"--monitor-interval", "SECONDS", "accepted",
       notices("monitor-interval", "ends of ranks are seen at once")},
      {"--start-method", "NAME", "accepted",
       notices("start-method", "ranks are programs of their own")},
      {"--event-log-handler", "NAME", "accepted",
       notices("event-log-handler", "musterrun has no events of torch")},
      {"--logs-specs", "NAME", "refused", refuses("it names a class of Python: give --log-dir")},
      {"--numa-binding", "KIND", "refused",
       refuses("musterrun does not bind processes: run numactl with --no-python")},
      {"--run-path", "", "refused",
       refuses("it runs in torch's own interpreter: give the script alone")},
      {"--virtual-local-rank", "", "refused",
       refuses("LOCAL_RANK is that of the process: set CUDA_VISIBLE_DEVICES in the program")},
      {"--duplicate-stdout-filters", "TEXT", "refused", refuses("filter the files of --log-dir")},
      {"--duplicate-stderr-filters", "TEXT", "refused", refuses("filter the files of --log-dir")},
      {"--local-addr", "HOST", "accepted as --master-addr of the first node",
       takes_text(&LaunchOptions::master_addr)},
  };
}

std::vector<OptionRow> make_rows() {
  std::vector<OptionRow> rows;
  for (const auto& group :
       {rows_of_the_program(), rows_of_numbered_nodes(), rows_of_meeting_nodes(),
        rows_of_failures(), rows_of_output(), rows_of_torchrun_alone()})
    rows.insert(rows.end(), group.begin(), group.end());
  return rows;
}

}  // namespace

const std::vector<OptionRow>& option_rows() {
  static const std::vector<OptionRow> rows = make_rows();
  return rows;
}

}  // namespace musterrun
