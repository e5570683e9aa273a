#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/types.h"

// Parts of lines for people.

namespace muster::json {

/// `name` in quotes, as `printable` writes it; its own quotes and backslashes as JSON does: "a\"b".
std::string quoted_name(std::string_view name);

/// "340 ms", "12.5 s", "3 min 20 s", "2 h 5 min".
std::string text_of(Duration duration);

/// "rank 3", "ranks 0-2, 7".
std::string text_of(const std::vector<RankRange>& ranks);

/// "host b7, pid 4711, label pod-3".
std::string text_of(const ProcessInfo& process);

}  // namespace muster::json
