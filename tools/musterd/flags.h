#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "log_format.h"
#include "muster/log.h"
#include "muster/server.h"

namespace musterd {

/// What is shown by HTTP, and to whom.
struct HttpConfiguration {
  std::string address;  ///< empty: nothing is
  std::vector<std::string> names;
  std::string certificate_file;
  std::string key_file;  ///< empty: it is in certificate_file
  std::string authorities_file;
  std::string tokens_file;
};

/// The settings from the flags, the environment and the configuration file.
struct Configuration {
  muster::ServerOptions server;
  HttpConfiguration http;
  std::string port_file;
  LogFormat log_format = LogFormat::text;
  bool connections_max_is_given = false;
  bool hello_connections_max_is_given = false;
  std::string file;                          ///< that was read, too; empty: none
  std::map<std::string, std::string> given;  ///< name of a setting -> where it was found
  std::map<std::string, std::vector<std::string>> values;  ///< the same -> as it was given
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
