#pragma once

#include "core/session/options.h"
#include "core_client.h"
#include "script.h"

namespace muster::script {

/// The options that a `server` line asks for; the engine's defaults otherwise.
core::Options server_options(Arguments& arguments, Processes& processes);

}  // namespace muster::script
