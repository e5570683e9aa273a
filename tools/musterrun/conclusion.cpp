#include "conclusion.h"

#include <algorithm>
#include <utility>

#include "devices.h"
#include "launch/placement.h"
#include "support/quotes.h"
#include "support/units.h"

namespace musterrun {
namespace {

using muster::launch::Compat;
using muster::launch::LaunchOptions;
using muster::launch::ProgramForm;
using muster::launch::Variables;

/// Steps return what is wrong; empty: nothing.
class Conclusion {
 public:
  Conclusion(Asked& asked, const Variables& environment)
      : asked_(asked), options_(asked.options), environment_(environment) {}

  std::string run() {
    options_.compat = asked_.compat.value_or(Compat::composer);
    if (is_torchrun()) options_.program.expands_arguments = false;
    using Step = std::string (Conclusion::*)();
    for (const Step step : {&Conclusion::conclude_form, &Conclusion::conclude_rendezvous,
                            &Conclusion::conclude_configuration, &Conclusion::read_shutdown_timeout,
                            &Conclusion::count_processes, &Conclusion::read_variables_of_composer,
                            &Conclusion::check_place, &Conclusion::conclude_tcpstore}) {
      std::string complaint = (this->*step)();
      if (!complaint.empty()) return complaint;
    }
    return {};
  }

 private:
  bool is_torchrun() const { return options_.compat == Compat::torchrun; }

  /// Where an option was said; empty: it was not.
  std::string where(const std::string& option) const {
    const auto found = options_.given.find(option);
    return found == options_.given.end() ? "" : found->second;
  }

  /// Whether somebody asked for it on the command line or in a variable of the launcher's own.
  bool is_given(const std::string& option) const { return !where(option).empty(); }

  const std::string* variable(const std::string& name) const {
    const std::string* const value = muster::launch::find_variable(environment_, name);
    return value != nullptr && !value->empty() ? value : nullptr;
  }

  std::string exclude(const std::string& option, const std::string& other) const {
    return where(option) + " and " + where(other) + " exclude each other";
  }

  std::string conclude_form() {
    if (asked_.is_module && asked_.is_command) return exclude("module", "command-mode");
    if (asked_.is_run_path && asked_.is_module) return exclude("run-path", "module");
    if (asked_.is_run_path && asked_.is_command) return exclude("run-path", "command-mode");
    if (options_.program.words.empty()) return "a program is missing";
    if (options_.program.words.front().empty()) return "the program's name is empty";
    if (asked_.is_module) {
      options_.program.form = ProgramForm::module;
    } else if (asked_.is_command) {
      options_.program.form = ProgramForm::command;
    } else if (asked_.is_run_path || is_torchrun()) {
      options_.program.form = ProgramForm::script;
    }
    return {};
  }

  std::string conclude_rendezvous() {
    std::string& rendezvous = options_.rendezvous.endpoint;
    if (asked_.is_standalone && options_.placement.nodes.max > 1)
      return where("standalone") + " is for one node, and " + where("nnodes") + " says more";
    if (asked_.is_standalone && !rendezvous.empty()) {
      asked_.notice(where("rendezvous"), "has no effect with " + where("standalone"));
      rendezvous.clear();
    }
    if (!rendezvous.empty() && asked_.rendezvous_backend == "static") {
      take_as_master(rendezvous);
      rendezvous.clear();
    } else if (rendezvous.ends_with(":0")) {
      if (options_.placement.nodes.max > 1)
        return where("rendezvous") + ": other nodes do not find port 0; name one that is free";
      asked_.notice(where("rendezvous"), "has no effect: one node needs no rendezvous");
      rendezvous.clear();
    }
    if (rendezvous.empty()) {
      if (options_.scale_up) return where("scale-up") + " needs --rendezvous HOST:PORT";
      if (asked_.rendezvous_backend == "c10d" && options_.placement.nodes.max > 1)
        return where("rdzv-backend") + ": c10d needs --rendezvous HOST:PORT";
      return {};
    }
    for (const std::string option : {"world-size", "base-rank"}) {
      if (!is_given(option)) continue;
      return where(option) + " is for nodes whose ranks are given by hand; with " +
             where("rendezvous") + " give --nnodes";
    }
    if (options_.placement.node_rank.value_or(0) >= options_.placement.nodes.max) {
      return where("node-rank") + ": node_rank(" + std::to_string(*options_.placement.node_rank) +
             ") must be less than nnodes(" + std::to_string(options_.placement.nodes.max) + ")";
    }
    // torchrun's default. Two jobs at one server must not meet, so elsewhere it is to be said.
    if (options_.job_id.empty() && is_torchrun()) options_.job_id = "none";
    if (options_.job_id.empty()) {
      return where("rendezvous") +
             " needs --job-id NAME: the same on all nodes, and of no other job at that time";
    }
    return {};
  }

  void take_as_master(const std::string& endpoint) {
    const auto colon = endpoint.rfind(':');
    std::string host = endpoint.substr(0, colon);
    if (host.front() == '[') host = host.substr(1, host.size() - 2);
    if (!options_.master.addr) options_.master.addr = host;
    const auto port = int_in(endpoint.substr(colon + 1), 1);
    if (port && !options_.master.port) options_.master.port = *port;
  }

  std::string conclude_configuration() {
    // The more particular one counts.
    for (const std::string name : {"timeout", "join_timeout", "last_call_timeout"}) {
      const auto found = asked_.rendezvous_conf.find(name);
      if (found == asked_.rendezvous_conf.end()) continue;
      const auto duration = tools::parse_duration(found->second);
      if (!duration) {
        return where("rdzv-conf") + ": " + name + ": " +
               no(found->second, std::string("duration (") + tools::duration_forms + ")");
      }
      const bool is_last_call = name == "last_call_timeout";
      if (!is_given(is_last_call ? "last-call" : "join-timeout"))
        (is_last_call ? options_.rendezvous.last_call : options_.rendezvous.join_timeout) =
            *duration;
      asked_.rendezvous_conf.erase(found);
    }
    for (const auto& [name, value] : asked_.rendezvous_conf) {
      asked_.notice(where("rdzv-conf") + ":",
                    tools::in_quotes(name + "=" + value) + " has no effect");
    }
    return {};
  }

  std::string read_shutdown_timeout() {
    constexpr const char* name = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT";
    const std::string* const value = variable(name);
    if (value == nullptr || is_given("shutdown-timeout")) return {};
    const auto duration = tools::parse_duration(*value);
    if (!duration) return std::string(name) + ": " + no(*value, "number of seconds");
    options_.shutdown_timeout = *duration;
    return {};
  }

  std::string count_processes() {
    int& count = options_.placement.process_count;
    const std::string& asked = asked_.process_count;
    if (asked.empty()) return count_by_default();
    const auto number = process_count_in(asked, 1);
    if (number) {
      count = *number;
    } else if (asked == "cpu") {
      count = cpu_count();
    } else {
      count = gpu_count(environment_);
      if (count == 0 && asked == "gpu")
        return where("nproc") + ": gpu: there is no CUDA device here, or no driver for it";
      if (count == 0) count = cpu_count();
    }
    return {};
  }

  std::string count_by_default() {
    constexpr const char* name = "LOCAL_WORLD_SIZE";
    options_.placement.process_count = 1;
    if (is_torchrun()) return {};
    if (const std::string* const value = variable(name)) {
      const auto number = process_count_in(*value, 0);
      if (!number) return std::string(name) + ": " + no(*value, "number of processes, from 0 on");
      options_.placement.process_count = std::max(*number, 1);
      options_.given["nproc"] = name;
    } else {
      options_.placement.process_count = std::max(gpu_count(environment_), 1);
    }
    return {};
  }

  /// torchrun's, of several nodes.
  void place_by_default() {
    if (options_.placement.nodes.max == 1) return;
    if (!options_.placement.node_rank && !options_.placement.base_rank)
      options_.placement.node_rank = 0;
    if (!options_.master.addr) options_.master.addr = "127.0.0.1";
    if (!options_.master.port) options_.master.port = 29500;
  }

  /// Which say where the ranks are, if nobody else does.
  std::string read_variables_of_composer() {
    if (!options_.rendezvous.endpoint.empty()) return {};
    if (is_torchrun()) return place_by_default(), std::string();
    const std::string* const local_world_size = variable("LOCAL_WORLD_SIZE");
    const std::string* const world_size = variable("WORLD_SIZE");
    const bool is_of_one_node =
        local_world_size != nullptr && world_size != nullptr && *local_world_size == *world_size;
    // --nnodes says the size of the world, too.
    if (!is_of_one_node && !is_given("nnodes")) {
      std::string complaint =
          read_number("WORLD_SIZE", "world-size", options_.placement.world_size, 1);
      if (!complaint.empty()) return complaint;
    }
    for (std::string complaint :
         {read_number("BASE_RANK", "base-rank", options_.placement.base_rank, 0),
          read_number("NODE_RANK", "node-rank", options_.placement.node_rank, 0)})
      if (!complaint.empty()) return complaint;
    if (const std::string* const address = variable("MASTER_ADDR"))
      options_.master.inherited_addr = *address;
    if (const std::string* const text = variable("MASTER_PORT")) {
      const auto port = int_in(*text, 1);
      const bool is_port = port && *port <= 65535;
      const bool are_several =
          options_.placement.nodes.max > 1 ||
          options_.placement.world_size.value_or(0) > options_.placement.process_count;
      // Of a single node it has no effect, whatever it is.
      if (!is_port && are_several && !options_.master.port)
        return "MASTER_PORT: " + no(*text, "port, a number from 1 to 65535");
      if (is_port) options_.master.inherited_port = *port;
    }
    return {};
  }

  std::string read_number(const std::string& name, const std::string& option,
                          std::optional<int>& to, int least) {
    const std::string* const value = variable(name);
    if (value == nullptr || to) return {};
    const auto number = int_in(*value, least);
    if (!number)
      return name + ": " + no(*value, "whole number from " + std::to_string(least) + " on");
    to = *number;
    options_.given[option] = name;
    return {};
  }

  std::string check_place() {
    if (!options_.rendezvous.endpoint.empty()) return {};
    auto placed = muster::launch::placement_of(options_);
    return placed ? std::string() : std::move(placed).error().detail;
  }

  std::string conclude_tcpstore() {
    using muster::launch::TcpStore;
    const std::string* const is_unwanted = variable("TORCH_DISABLE_SHARE_RDZV_TCP_STORE");
    if (!is_given("tcpstore") && is_unwanted != nullptr && *is_unwanted == "1")
      options_.master.tcpstore = TcpStore::off;
    if (!options_.rendezvous.endpoint.empty()) return {};
    const auto placed = muster::launch::placement_of(options_);
    if (!placed || !placed->is_multi_node) return {};
    if (options_.master.tcpstore == TcpStore::on) {
      return where("tcpstore") +
             ": nodes that are numbered by hand do not meet, so one could not tell the others of "
             "its TCPStore; give --rendezvous HOST:PORT";
    }
    options_.master.tcpstore = TcpStore::off;
    return {};
  }

  Asked& asked_;
  LaunchOptions& options_;
  const Variables& environment_;
};

}  // namespace

std::string conclude(Asked& asked, const Variables& environment) {
  return Conclusion(asked, environment).run();
}

}  // namespace musterrun
