#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "json/bytes.h"
#include "json/documents.h"
#include "json/fields.h"
#include "json/texts.h"
#include "muster/log.h"

// How musterctl prints: text for people, one document for programs.

namespace musterctl {

using muster::printable;
using muster::json::add_bytes;
using muster::json::base64;
using muster::json::is_utf8;
using muster::json::Json;
using muster::json::json_of;
using muster::json::json_of_value;
using muster::json::quoted_name;
using muster::json::seconds_of;
using muster::json::text_of;

/// Characters, for columns; of UTF-8.
std::size_t width_of(std::string_view text);

/// Columns as wide as their longest cell, under their titles.
std::string table_of(const std::vector<std::string>& titles,
                     const std::vector<std::vector<std::string>>& rows);

}  // namespace musterctl
