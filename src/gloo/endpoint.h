#pragma once

#include <string>

#include "muster/gloo.h"

namespace muster::gloo_internal {

/// The address at which a rank listens for the others.
struct Endpoint {
  std::string text;  ///< in numbers
  int family = 0;    ///< AF_INET or AF_INET6
  bool is_loopback = false;
};

/// That of the interface or address that the options name; else the one from which this host
/// reaches the server of the store. May take long: it looks names up.
///
/// errors  invalid_argument (detail: what there is instead)
Result<Endpoint> find_endpoint(const gloo::Options& options, const std::string& store_address);

}  // namespace muster::gloo_internal
