#pragma once

#include <cstdint>

#include "net/address/unit.h"

namespace muster::server {

/// How a connection has come, and so by what it is known whose it is.
struct Arrival {
  enum class Kind : std::uint8_t {
    open,  ///< nobody is asked who he is
    tls,   ///< TLS tells it
    user,  ///< the system tells whose process it is
  };

  Kind kind = Kind::open;
  net::SystemUser user{};
};

}  // namespace muster::server
