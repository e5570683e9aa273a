#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/failure.h"
#include "base/text.h"
#include "core/session/engine_services.h"
#include "muster/error.h"

// The errors that several rooms of core make.

namespace muster::core {

using base::failure;
using base::in_seconds;
using base::quoted_text;

/// "host:pid (label)".
std::string describe(const ProcessInfo& process);

/// `what` names what is too large and its unit: "the value of 'a' has <actual> bytes".
Error too_large(std::string_view what, std::uint64_t actual, std::string_view unit,
                std::uint64_t limit, std::string_view limit_name = {});

// Refusals: who makes one of these counts it.

/// resource_exhausted: a limit that is named in `what`.
Error exhausted(Tallies& tallies, Limit which, std::string what, std::uint64_t actual,
                std::uint64_t limit);

/// busy: there is no place for a newcomer; `what` names the limit.
Error full(Tallies& tallies, Limit which, std::string what, std::uint64_t actual,
           std::uint64_t limit);

/// Of a refusal that no limit of ours made.
inline constexpr std::string_view out_of_system_memory =
    "the system gives the server no more memory; free some on its machine";

/// The refusal, which it counts, of `bytes` more by `quota` or by one above it, whichever it is.
Error memory_exhausted(const Quota& quota, std::uint64_t bytes);

}  // namespace muster::core
