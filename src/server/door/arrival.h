#pragma once

#include <cstdint>

#include "net/address/unit.h"

namespace muster::server {

/// How a connection has come, and so by what it is known whose it is.
struct Arrival {
  enum class Kind : std::uint8_t {
    open,      ///< nobody is asked who he is
    tls,       ///< TLS tells it
    user,      ///< the system tells whose process it is
    tcpstore,  ///< nobody is asked who he is, and TCPStore's protocol is spoken
  };

  Kind kind = Kind::open;
  std::uint16_t port = 0;  ///< of tcpstore: its number among those of the settings
  net::SystemUser user{};
};

}  // namespace muster::server
