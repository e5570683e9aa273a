#pragma once

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

#include "muster/store.h"

namespace musterctl {

/// Exit codes, documented in --help.
enum Exit : int {
  exit_ok = 0,
  exit_failed = 1,  ///< the server refused, or the outcome is unknown
  exit_usage = 2,
  exit_absent = 3,       ///< no such key, or it did not come in time
  exit_unavailable = 4,  ///< no Muster server answers
};

/// What every command shares.
struct Common {
  std::string server = "127.0.0.1:29400";
  std::string name_space;
  double timeout_s = 10;
  bool json = false;

  muster::Duration timeout() const;
};

/// What to do with a connected store once the command line is read; returns the exit code.
using Command = std::function<int(muster::Store& store, const Common& common)>;

/// Refuses what is no time to wait or to live.
CLI::Validator seconds_above_zero();

/// Add subcommands to `app`; the one that is given ends up in `chosen`.
void add_key_commands(CLI::App& app, Command& chosen);
void add_inspect_commands(CLI::App& app, Command& chosen);

/// Prints the error on stderr and returns its exit code.
int report(const muster::Error& error);

}  // namespace musterctl
