#pragma once

#include <functional>
#include <string_view>

#include "muster/config.h"

MUSTER_BEGIN_NAMESPACE

enum class LogLevel { debug, info, warning, error };

/// Takes one line of text without its line end. Called on whatever thread something happens: one
/// of Muster's, one that calls Muster, or the one that serves a host's loop. It must not block, and
/// must not call back into the object that logs. Empty: silent, the default.
using Logger = std::function<void(LogLevel level, std::string_view line)>;

MUSTER_END_NAMESPACE
