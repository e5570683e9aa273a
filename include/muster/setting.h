#pragma once

#include <cstdint>

#include "muster/config.h"

MUSTER_BEGIN_NAMESPACE

/// What the number of a server's setting counts. The numbers are part of the protocol.
enum class SettingKind : std::uint8_t {
  number = 0,
  bytes = 1,
  duration = 2,  ///< microseconds
  level = 3,     ///< of a log: that of `LogLevel`, debug 0 to error 3; 4: nothing
};

MUSTER_END_NAMESPACE
