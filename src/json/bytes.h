#pragma once

#include <optional>
#include <string>
#include <string_view>

// Keys, names and values are any bytes; a document is text.

namespace muster::json {

/// As `muster::printable`, of a document in JSON, which stays the same document: "\u202e". What is
/// not ASCII stands in its strings alone; it is UTF-8.
std::string printable_json(std::string_view json);

bool is_utf8(std::string_view bytes);

/// As in RFC 4648, with padding.
std::string base64(std::string_view bytes);
/// What `base64` has made; none: it has not made this.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace muster::json
