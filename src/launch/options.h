#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/stream_choice.h"
#include "muster/types.h"

namespace muster::launch {

/// How a rank's program is run.
enum class ProgramForm : std::uint8_t {
  automatic,  ///< what ends in .py by Python, everything else as it is
  module,     ///< as a module of Python
  command,    ///< as it is
};

/// Whose meaning options have that composer and torchrun both know.
enum class Compat : std::uint8_t { composer, torchrun };

struct NodeRange {
  int min = 1;
  int max = 1;
};

/// What musterrun was asked for. docs/musterrun.md has each option.
struct LaunchOptions {
  // What is run.
  ProgramForm form = ProgramForm::automatic;
  std::vector<std::string> program;  ///< and its arguments
  bool expands_arguments = true;
  Compat compat = Compat::composer;

  // How many ranks, and where.
  int process_count = 1;  ///< on this node
  NodeRange nodes;
  std::optional<int> node_rank;
  std::optional<int> base_rank;
  std::optional<int> world_size;
  std::optional<std::string> master_addr;
  std::optional<int> master_port;
  std::string rendezvous;  ///< HOST:PORT; empty: none
  std::string job_id;      ///< empty: one is drawn
  std::string role = "default";

  // When something fails.
  int max_restarts = 0;
  bool scale_up = false;
  Duration join_timeout{std::chrono::seconds(600)};
  Duration last_call{std::chrono::seconds(30)};
  Duration shutdown_timeout{std::chrono::seconds(30)};
  std::optional<Duration> exit_grace;
  std::vector<int> signals;  ///< that are forwarded

  // Where output goes.
  std::optional<std::string> stdout_format;
  std::optional<std::string> stderr_format;
  std::string log_dir;
  StreamChoice redirects;
  StreamChoice tee;
  std::vector<int> shown_local_ranks;  ///< empty: as by default
  bool verbose = false;
};

}  // namespace muster::launch
