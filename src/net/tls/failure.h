#pragma once

#include <string>
#include <string_view>

#include "net/channel.h"
#include "net/tls/library.h"

// Why TLS has failed, in words for whoever reads an error or a log.

namespace muster::net::tls {

struct Failure {
  CloseCause cause = CloseCause::lost;
  std::string detail;
};

/// Of a session that has failed.
Failure failure_of(const TlsSession& session);

/// What a server that cannot shake hands says to whoever speaks TLS.
std::string alert_of_unable();

/// Of a session whose connection has ended before hands were shaken.
std::string unestablished(const TlsSession& session, std::string_view why);

}  // namespace muster::net::tls
