#pragma once

#include <cstdint>
#include <string>

#include "client/protocol/protocol.h"
#include "muster/store.h"

// What the public options are to the protocol, and the server's limits to the public.

namespace muster::client {

protocol::Options protocol_options(const std::string& address, const StoreOptions& options,
                                   const ProcessInfo& process, std::uint64_t jitter_seed);

Limits limits_of(const wire::ServerLimits& from);

}  // namespace muster::client
