#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "muster/error.h"
#include "muster/types.h"

// How musterctl prints: text for people, one document for programs.

namespace musterctl {

using Json = nlohmann::ordered_json;

/// `indent` as nlohmann has it: -1 is one line. Bytes that are no UTF-8 show as U+FFFD, and what a
/// terminal would obey as "\u001b".
std::string text_of(const Json& document, int indent);

/// Adds bytes under `name`; if they are no UTF-8 also, exact, under `name` + "_base64".
void add_bytes(Json& json, const std::string& name, std::string_view bytes);

/// Columns as wide as their longest cell, under their titles.
std::string table_of(const std::vector<std::string>& titles,
                     const std::vector<std::vector<std::string>>& rows);

/// "340 ms", "12.5 s", "3 min 20 s", "2 h 5 min".
std::string text_of(muster::Duration duration);
double seconds_of(muster::Duration duration);

/// "rank 3", "ranks 0-2, 7".
std::string text_of(const std::vector<muster::RankRange>& ranks);
/// Every rank, one by one.
Json json_of(const std::vector<muster::RankRange>& ranks);

/// "host b7, pid 4711, label pod-3".
std::string text_of(const muster::ProcessInfo& process);
/// Adds host, pid, label and process id.
void add_process(Json& json, const muster::ProcessInfo& process);

/// Its code, the ranks that it tells of in full, the numbers of all at fault, and its message.
Json json_of(const muster::Error& error);

}  // namespace musterctl
