#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>

#include "muster/log.h"
#include "muster/server.h"

namespace musterd {

/// The settings from the flags, the environment and the configuration file.
struct Configuration {
  muster::ServerOptions server;
  std::string port_file;
  std::optional<muster::LogLevel> log_level = muster::LogLevel::info;  ///< none: silent
  bool connections_max_is_given = false;
  bool hello_connections_max_is_given = false;
  std::map<std::string, std::string> given;  ///< name of a setting -> where it was found
};

/// There is nothing to serve: `text` was asked for (exit code 0), or says what is wrong (2).
struct Exit {
  int code = 0;
  std::string text;
};

/// A flag wins over the environment, that over the file.
std::variant<Configuration, Exit> read_configuration(int argc, const char* const* argv);

enum ExitCode {
  exit_ok = 0,
  exit_failed = 1,
  exit_usage = 2,
  exit_address_in_use = 3,
  exit_not_allowed = 4,
};

}  // namespace musterd
