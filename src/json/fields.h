#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "muster/types.h"

// Parts of documents, and their text.

namespace muster::json {

using Json = nlohmann::ordered_json;

/// `indent` as nlohmann has it: -1 is one line. Bytes that are no UTF-8 show as U+FFFD, and what a
/// terminal would obey as "\u001b". Ends with a line end.
std::string text_of(const Json& document, int indent);

/// The same on one line, without its end.
std::string line_of(const Json& document);

/// Adds bytes under `name`; if they are no UTF-8 also, exact, under `name` + "_base64".
void add_bytes(Json& json, const std::string& name, std::string_view bytes);

double seconds_of(Duration duration);

/// Every rank, one by one.
Json json_of(const std::vector<RankRange>& ranks);

/// Adds host, pid, label and process id.
void add_process(Json& json, const ProcessInfo& process);

}  // namespace muster::json
