#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/signal_names.h"
#include "launch/stream_choice.h"
#include "muster/types.h"

namespace muster::launch {

/// How the program is started.
enum class ProgramForm {
  automatic,  ///< a name that ends in ".py" is a script, everything else a command
  script,     ///< a file for Python, whatever its name
  module,     ///< a module for Python
  command,    ///< as it is
};

/// Whose defaults hold, and whose option it is where one letter means two things.
enum class Compat { composer, torchrun };

/// Whether the processes of a node get a PID namespace, with which the kernel ends them.
enum class PidNamespace {
  automatic,  ///< where this process may make one
  always,     ///< else nothing starts; in a user namespace where there is no other way
  never,
};

/// Whether torch's ranks find a TCPStore at MASTER_ADDR and MASTER_PORT.
enum class TcpStore {
  automatic,  ///< where nobody reaches it who is not let to the job's own server
  on,         ///< also where others do; else nothing starts
  off,        ///< rank 0 of torch hosts one itself
};

/// What torch speaks there if it does not say VALIDATE, of which nothing tells one from the other.
enum class TcpStoreDialect {
  first,   ///< as PyTorch 1 and 2.0
  second,  ///< as PyTorch 2.1
};

/// From how many to how many nodes a job may have.
struct NodeRange {
  int min = 1;
  int max = 1;
};

/// The program that each rank runs.
struct ProgramOptions {
  ProgramForm form = ProgramForm::automatic;
  std::vector<std::string> words;  ///< the program and its arguments
  bool expands_arguments = true;   ///< variables are put into the arguments
  std::string python = "python3";  ///< without PYTHON_EXEC
};

/// How many ranks there are, and which of them this node has.
struct PlacementOptions {
  int process_count = 1;  ///< of this node
  NodeRange nodes;
  std::optional<int> node_rank;
  std::optional<int> base_rank;   ///< the first rank of this node
  std::optional<int> world_size;  ///< of all nodes
};

/// What ranks find at MASTER_ADDR and MASTER_PORT.
struct MasterOptions {
  std::optional<std::string> addr;
  std::optional<int> port;
  /// What the variables said when the launcher began. They may be those of another job, so a job of
  /// one node does not use them.
  std::optional<std::string> inherited_addr;
  std::optional<int> inherited_port;
  TcpStore tcpstore = TcpStore::automatic;
  TcpStoreDialect tcpstore_dialect = TcpStoreDialect::first;
};

/// How the nodes of a job meet.
struct RendezvousOptions {
  /// Where, "host:port"; empty: the ranks of each node are given by hand.
  std::string endpoint;
  /// Others may connect to a server that this node hosts beyond loopback.
  bool allow_unauthenticated = false;
  /// By which address the other nodes reach this one.
  std::optional<std::string> local_addr;
  Duration join_timeout = std::chrono::seconds(600);  ///< until enough nodes have come
  /// With the least number of nodes there, until no further one comes.
  Duration last_call = std::chrono::seconds(30);
};

/// Where the ranks' output goes.
struct OutputOptions {
  std::optional<std::string> stdout_format;  ///< the name of the file, see LogFormat
  std::optional<std::string> stderr_format;
  std::string log_dir;                 ///< empty: there is none
  StreamChoice redirects;              ///< go to files of `log_dir` and nowhere else
  StreamChoice tee;                    ///< go to files of `log_dir` as well
  std::vector<int> shown_local_ranks;  ///< whose output is shown; empty: as by default
  std::string line_prefix;             ///< before each line of `tee`; empty: "[ROLERANK]: "
};

/// Everything that was asked of the launcher, after defaults.
struct LaunchOptions {
  ProgramOptions program;
  PlacementOptions placement;
  MasterOptions master;
  RendezvousOptions rendezvous;
  OutputOptions output;
  Compat compat = Compat::composer;

  std::string job_id;  ///< empty: one is drawn
  std::string role = "default";
  int max_restarts = 0;
  Duration shutdown_timeout = std::chrono::seconds(30);  ///< from SIGTERM to SIGKILL
  /// How long the other ranks may run on when one has exited with 0; none: as long as they like.
  std::optional<Duration> exit_grace;
  bool scale_up = false;  ///< a node that comes later begins another attempt

  /// Those that the ranks are told of. `ends_job` says which of them end the job as well.
  std::vector<int> signals{signal_terminate, signal_interrupt, signal_hang_up, signal_quit};
  PidNamespace pid_namespace = PidNamespace::automatic;
  bool verbose = false;
  bool dry_run = false;

  /// The variables of the environment that options set, for the launcher's stores and the ranks:
  /// the files of their certificate.
  std::map<std::string, std::string> variables;
  /// What was given by hand, by the name of its option: "node-rank" -> "--node-rank", or the
  /// variable that said it, such as "NODE_RANK".
  std::map<std::string, std::string> given;
  /// What whoever has called should know of the options, one line each.
  std::vector<std::string> notices;
};

}  // namespace muster::launch
