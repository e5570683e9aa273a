#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::server::http {

struct Target {
  std::string path;  ///< its escapes are decoded
  std::string query;
  std::optional<std::string> host = {};  ///< that it names in place of the line "Host"
};

/// With what "%20" and the like stand for; nothing: one of them is wrong.
std::optional<std::string> without_escapes(std::string_view text);

/// Reads "/path?query" or "http://host/path?query".
///
/// returns  nothing: it is of another form, or an escape or a byte in it is wrong
std::optional<Target> read_target(std::string_view text);

}  // namespace muster::server::http
