#pragma once

#include <string>
#include <string_view>

#include "muster/log.h"

namespace musterd {

/// How a line of the log is written.
enum class LogFormat {
  text,  ///< time, level and message, for people
  json,  ///< one object: `time`, `level`, `message`, and what of it can be told by itself
};

/// A line of the log with its line end. Of a message about a session, its connection or a group,
/// JSON has `session`, `peer`, `group`, `epoch` and `round`, too, as the message names them.
///
/// time  "2026-01-31T12:00:00.123Z"
std::string log_line(LogFormat format, std::string_view time, muster::LogLevel level,
                     std::string_view message);

}  // namespace musterd
