#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "muster/store.h"
#include "output.h"

namespace musterctl {

/// Exit codes, documented in --help and musterctl(1).
enum Exit : int {
  exit_ok = 0,
  exit_refused = 1,  ///< the server refused, a key is there or has another value, the outcome of a
                     ///< change is unknown, or the standard input or output fails
  exit_usage = 2,
  exit_absent = 3,       ///< a key, group or namespace is absent, or the wait timed out
  exit_unavailable = 4,  ///< no Muster server answers
};

/// Options of every command.
struct Common {
  std::string server = "127.0.0.1:29400";
  std::string name_space;
  std::string credential_file;  ///< empty, as those below: the library asks the environment
  std::string certificate_file;
  std::string certificate_key_file;
  std::string authorities_file;
  std::string server_name;
  std::optional<muster::Duration> timeout;  ///< of the whole command, once a server is there
  muster::Duration wait_for_server{0};      ///< while nobody is there
  std::optional<muster::Duration> watch;    ///< how often the command is repeated
  bool json = false;
};

/// One run of a command on a connected store.
struct Run {
  muster::Store& store;
  const Common& common;
  muster::Duration timeout;
  std::chrono::steady_clock::time_point deadline;

  /// The time left of the timeout, at least 1 ms.
  muster::Duration left() const;
};

/// The output of a command; only one of `document` and `text`, as --json says.
struct Answer {
  Json document;
  std::string text;
  std::string complaint;  ///< for people, one line
  int exit_code = exit_ok;
};

using Command = std::function<muster::Result<Answer>(Run& run)>;

enum class Kind {
  changes,
  waits,  ///< for keys, and changes nothing
  reads,  ///< and is answered at once: it can be repeated
};

/// The command that the command line names.
struct Chosen {
  Command command;
  Kind kind = Kind::changes;
  muster::Role role = muster::Role::observer;           ///< what it connects as
  std::function<Answer(const Common& common)> local{};  ///< in place of a command: without a server
};

/// Add subcommands to `app`; the one that is given ends up in `chosen`.
void add_key_commands(CLI::App& app, Chosen& chosen);
void add_store_commands(CLI::App& app, Chosen& chosen);
void add_list_commands(CLI::App& app, Chosen& chosen);
void add_namespace_commands(CLI::App& app, Chosen& chosen);
void add_why_command(CLI::App& app, Chosen& chosen);
void add_credential_commands(CLI::App& app, Chosen& chosen);
void add_operate_commands(CLI::App& app, Chosen& chosen);
void add_copy_commands(CLI::App& app, Chosen& chosen);

/// Adds an option that is a time above zero, handed to `take`.
CLI::Option* add_duration(CLI::App& app, const std::string& name, const std::string& help,
                          std::function<void(muster::Duration)> take);
/// Of 32 hexadecimal digits; none: they are not that.
std::optional<muster::ProcessId> parse_process(std::string_view digits);
/// Why `text` is no time of at least `least`; empty: it is one. A number alone is seconds.
std::string refusal_of_duration(const std::string& text, muster::Duration least);

Answer answer_of(const muster::Error& error, Kind kind);
/// For who has found nothing in the run's namespace: the answer that there is no such namespace;
/// none: there is or was one, or the server does not tell.
std::optional<Answer> no_such_namespace(Run& run, Kind kind);
/// Of a command that prints a value byte for byte.
Answer value_of(const Run& run, std::string value);

/// The end of a command's --help: examples, and where the rest is told.
std::string footer_with(const std::string& examples);

}  // namespace musterctl
