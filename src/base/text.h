#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/types.h"

// Values as text for errors and logs.

namespace muster::base {

/// A measured time, rounded: "250 us", "250 ms", "1.5 s"; 0 if it is negative.
std::string rounded(Duration duration);

/// A time that somebody has set, exactly: "0.25 s", "30 s".
std::string in_seconds(Duration duration);

/// A name as `printable` writes it, at most 128 bytes of it.
std::string shown(std::string_view name);
/// The same in double quotes: its own, and backslashes, have a backslash before them, as in JSON.
std::string shown_in_quotes(std::string_view name);

/// `bytes` in single quotes, at most 64 of them, as `printable` writes them; quotes and backslashes
/// as \xNN, too.
std::string quoted_text(std::string_view bytes);

/// 16 hexadecimal digits.
std::string hex_digits(std::uint64_t number);

/// "3-5, 9"; past 16 ranges the other ranks are counted: "... and 7 more".
std::string text_of(const std::vector<RankRange>& ranges);

}  // namespace muster::base
