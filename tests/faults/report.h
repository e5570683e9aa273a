#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "muster/error.h"
#include "muster/types.h"

namespace muster::faults {

/// Writes one line to standard output, with the monotonic time in microseconds as `t_us`; from any
/// thread.
void say(nlohmann::json line);

/// All that the error says; without one the code "ok".
nlohmann::json described(const Error& error);

/// The process as errors name it.
nlohmann::json described(const ProcessInfo& process);

}  // namespace muster::faults
