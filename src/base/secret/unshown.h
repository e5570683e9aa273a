#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "muster/error.h"

// Users put keys, lines of credentials and tokens where they do not belong: in the variable for a
// path, in an address, in a label. Such a text is not shown; the error says what to do.

namespace muster::base {

/// Whether there is a key in it, a line with one, a token for HTTP or a private key: 42 or more
/// characters of base64 in a row, small and capital letters among them, or how the others begin.
bool looks_secret(std::string_view text);

/// The text, or in its place that it looks like a key.
std::string shown_unless_secret(std::string_view text);

/// Of a text that looks like a key, where `option` takes another one: what belongs where. None: it
/// does not look so.
std::optional<Error> refuse_secret(std::string_view option, std::string_view text);
/// The same of a path. Folders that exist may look like a key, and so may a file that exists.
std::optional<Error> refuse_secret_path(std::string_view option, const std::string& path);

/// Without the ends of lines behind it, which secrets of Kubernetes and editors add.
std::string_view without_line_end(std::string_view text);

}  // namespace muster::base
