#pragma once

#include <cstdint>

#include "core/session/options.h"
#include "core/session/session.h"
#include "wire/request.h"

namespace muster::core {

/// What the reply to the request will take at most, if what it tells of stays as it is.
std::uint64_t bytes_of_reply(const Options& options, const Session& session,
                             const wire::Request& request);

}  // namespace muster::core
