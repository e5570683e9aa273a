#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/session/options.h"
#include "muster/log.h"
#include "muster/result.h"
#include "muster/server.h"
#include "server/door/door.h"
#include "server/metrics/source.h"
#include "server/tcpstore/port.h"
#include "server/watch/source.h"

namespace muster::server {

/// What the serving loop needs of the options.
struct Settings {
  core::Options core;
  bool is_alone = false;                 ///< the process does nothing else
  std::shared_ptr<Door> door;            ///< null: nobody is asked who he is
  std::vector<tcpstore::Port> tcpstore;  ///< in the order of the options
  Logger logger;
  std::function<std::uint64_t()> log_lines_dropped;
  std::function<bool()> is_short_of_memory;
  std::function<void(const Error& why)> on_failure;
  std::function<void(const std::string& reason)> on_draining;
  std::function<void(const std::string& reason)> on_drained;
  std::shared_ptr<Metrics::Source> metrics;  ///< null: nobody is shown any
  std::shared_ptr<Watch::Source> watch;      ///< null: nobody looks
  std::chrono::system_clock::time_point started = std::chrono::system_clock::now();
};

/// How long the kernel waits for acknowledgements. To it a peer that takes nothing is as one that
/// is gone: it must not end the connection before the service can say why.
Duration user_timeout_of(const core::Options& options);

bool has_credentials(const ServerOptions& options);

/// Checks the options that the engine has, and turns them into its form.
///
/// errors  invalid_argument (names the option)
Result<core::Options> make_core_options(const ServerOptions& options);

/// Checks every option and fills in what is made anew at each start.
///
/// errors  invalid_argument (names the option), unavailable (the system gives no random numbers, or
///         does not let a file be read), too_large, unsupported (credentials without TLS)
Result<Settings> make_settings(const ServerOptions& options);

}  // namespace muster::server
