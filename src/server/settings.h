#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/session/options.h"
#include "muster/log.h"
#include "muster/result.h"
#include "muster/server.h"
#include "server/door/door.h"

namespace muster::server {

/// What the serving loop needs of the options.
struct Settings {
  core::Options core;
  std::shared_ptr<Door> door;  ///< null: nobody is asked who he is
  Duration busy_poll{0};
  Logger logger;
  std::function<bool()> is_short_of_memory;
  std::function<void(const Error& why)> on_failure;
};

/// How long the kernel waits for acknowledgements. To it a peer that takes nothing is as one that
/// is gone: it must not end the connection before the service can say why.
Duration user_timeout_of(const core::Options& options);

bool has_credentials(const ServerOptions& options);

/// Checks every option and fills in what is made anew at each start.
///
/// errors  invalid_argument (names the option), unavailable (the system gives no random numbers, or
///         does not let a file be read), too_large, unsupported (credentials without TLS)
Result<Settings> make_settings(const ServerOptions& options);

}  // namespace muster::server
