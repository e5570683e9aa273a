#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "muster/types.h"

// The units that people write in flags and files.

namespace tools {

// How each is written, for messages.
inline constexpr const char* duration_forms =
    "write 500ms, 15s, 2min or 1h; a number alone is seconds";
inline constexpr const char* bytes_forms = "write 4096, 64KiB, 16MiB or 1GiB";

/// As `duration_forms` says, also "250us" and fractions ("1.5s"); at most 31 years.
std::optional<muster::Duration> parse_duration(std::string_view text);

/// As `bytes_forms` says.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

/// In the largest unit that needs no fraction: "500ms", "1GiB". The functions above read it.
std::string duration_text(muster::Duration duration);
std::string bytes_text(std::uint64_t bytes);

std::optional<std::uint64_t> parse_number(std::string_view text);
std::optional<std::int64_t> parse_signed_number(std::string_view text);

/// "true" or "false", also "yes", "no", "on", "off", "1", "0".
std::optional<bool> parse_switch(std::string_view text);

}  // namespace tools
