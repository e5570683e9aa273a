#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "muster/types.h"

// The units that people write in flags and files.

namespace tools {

/// "15s", "500ms", "250us", "10min", "2h", also with a fraction ("1.5s"); at most 31 years.
std::optional<muster::Duration> parse_duration(std::string_view text);
/// The same, and a number alone is seconds.
std::optional<muster::Duration> parse_duration_or_seconds(std::string_view text);

/// "4096", "64KiB", "16MiB", "1GiB": bytes.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

std::optional<std::uint64_t> parse_number(std::string_view text);
std::optional<std::int64_t> parse_signed_number(std::string_view text);

/// "true" or "false", also "yes", "no", "on", "off", "1", "0".
std::optional<bool> parse_switch(std::string_view text);

}  // namespace tools
