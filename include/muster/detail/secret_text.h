#pragma once

// Keys that users put where they do not belong. For what is above the library `muster`: the runtime
// library and the Python package.

#include <string>
#include <string_view>

#include "muster/config.h"

MUSTER_BEGIN_NAMESPACE

namespace detail {

/// What an error says of a text that looks like a key, a line with one, a token for HTTP or a
/// private key: the option or variable that has it, and what takes a key. It shows nothing of it.
///
/// returns  empty: the text does not look so
MUSTER_API std::string complaint_of_secret(std::string_view option, std::string_view text);

}  // namespace detail

MUSTER_END_NAMESPACE
