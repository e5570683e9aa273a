#pragma once

#include <string>
#include <string_view>

// Keys, names and values are any bytes; what is printed is text.

namespace musterctl {

/// On one line, and nothing that a terminal would obey: control characters and what is no UTF-8
/// show as "\x0a".
std::string printable(std::string_view bytes);

bool is_utf8(std::string_view bytes);

/// As in RFC 4648, with padding.
std::string base64(std::string_view bytes);

/// Characters, for columns; of UTF-8.
std::size_t width_of(std::string_view text);

}  // namespace musterctl
