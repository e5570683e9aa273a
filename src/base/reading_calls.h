#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace muster::base {

/// The public calls that change nothing, by their names in errors: whoever does not know how one
/// ended makes it again. A receive is one of them: when it fails, the object stays.
inline constexpr std::array<std::string_view, 22> reading_calls = {
    "connect", "reopen",  "get",           "exists",       "multi_exists", "wait",
    "list",    "status",  "list_objects",  "sessions",     "multi_get",    "groups",
    "waiters", "members", "inspect_group", "recover",      "recv_obj",     "namespaces",
    "whoami",  "history", "queue_length",  "get_settings",
};

constexpr bool only_reads(std::string_view operation) {
  return std::find(reading_calls.begin(), reading_calls.end(), operation) != reading_calls.end();
}

}  // namespace muster::base
