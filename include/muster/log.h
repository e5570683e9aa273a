#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "muster/config.h"

MUSTER_BEGIN_NAMESPACE

enum class LogLevel { debug, info, warning, error };

/// Takes one line of text without its line end. Called on whatever thread something happens: one
/// of Muster's, one that calls Muster, or the one that serves a host's loop. It must not block, and
/// must not call back into the object that logs. Empty: silent, the default. A line is `printable`.
using Logger = std::function<void(LogLevel level, std::string_view line)>;

/// `text` as it may be printed: on one line, and with nothing that a terminal obeys or that nobody
/// sees. Bytes that are no UTF-8, U+0000 to U+001F and U+007F are written as "\x1b". As "\u200b"
/// are written: U+0080 to U+009F, U+2028, U+2029; what turns the direction of text or has no width,
/// U+00AD, U+061C, U+180E, U+200B to U+200F, U+202A to U+202E, U+2060 to U+206F and U+FEFF. Applied
/// again, it changes nothing. Muster's log lines and `Error::message()` have it applied; names,
/// labels and values that other processes gave have not.
MUSTER_API std::string printable(std::string_view text);

MUSTER_END_NAMESPACE
