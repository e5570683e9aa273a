#pragma once

#include <optional>

#include "muster/error.h"
#include "muster/store.h"
#include "wire/request.h"

namespace muster::client {

/// What a request breaks of the limits and of its documented rules, found before it costs a round
/// trip: invalid_argument, or too_large with `actual` and `limit`.
std::optional<Error> refusal_of(const wire::RequestBody& body, const Limits& limits);

}  // namespace muster::client
