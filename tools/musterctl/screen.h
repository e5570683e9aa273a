#pragma once

#include <string>

namespace musterctl {

/// Whether the standard output is a terminal that can be redrawn.
bool is_screen();

/// The bytes that make the terminal show `text` from its top, cut to its number of lines.
std::string screenful_of(const std::string& text);

/// The local time of day, "12:31:05".
std::string clock_text();
/// "2026-11-21 12:31:05".
std::string date_text();
/// "2026-11-21T11:31:05Z".
std::string utc_text();

}  // namespace musterctl
