#pragma once

#include <string>
#include <string_view>

#include "muster/log.h"

// Keys, names and values are any bytes; what is printed is text.

namespace musterctl {

using muster::printable;

/// The same of a document in JSON, which stays the same document: "\u202e". What is not ASCII
/// stands in its strings alone; it is UTF-8.
std::string printable_json(std::string_view json);

bool is_utf8(std::string_view bytes);

/// As in RFC 4648, with padding.
std::string base64(std::string_view bytes);

/// Characters, for columns; of UTF-8.
std::size_t width_of(std::string_view text);

}  // namespace musterctl
