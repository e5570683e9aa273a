#pragma once

#include <string>

#include "core/events.h"
#include "net/address/unit.h"
#include "server/tcpstore/request.h"

namespace muster::server::tcpstore {

/// What holds for all who come in at one port for clients of TCPStore's.
struct Port {
  std::string name_space;
  net::UnitId unit;  ///< whose shares they count for, all together
  std::string unit_name;
  core::GuestTerms terms;
  Dialect fallback = Dialect::first;
  RequestLimits limits;
};

}  // namespace muster::server::tcpstore
