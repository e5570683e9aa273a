#include "json/texts.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "muster/log.h"

namespace muster::json {

std::string quoted_name(std::string_view name) {
  std::string escaped;
  for (const char letter : name) {
    if (letter == '"' || letter == '\\') escaped += '\\';
    escaped += letter;
  }
  return '"' + printable(escaped) + '"';
}

std::string text_of(Duration duration) {
  const auto milliseconds = std::max<std::int64_t>(duration / std::chrono::milliseconds(1), 0);
  if (milliseconds < 1000) return std::to_string(milliseconds) + " ms";
  const auto seconds = milliseconds / 1000;
  if (seconds < 60) {
    return std::to_string(seconds) + "." + std::to_string(milliseconds % 1000 / 100) + " s";
  }
  if (seconds < 3600) {
    return std::to_string(seconds / 60) + " min " + std::to_string(seconds % 60) + " s";
  }
  return std::to_string(seconds / 3600) + " h " + std::to_string(seconds % 3600 / 60) + " min";
}

std::string text_of(const std::vector<RankRange>& ranks) {
  std::string text;
  for (const RankRange range : ranks) {
    text += (text.empty() ? "" : ", ") + std::to_string(range.first);
    if (range.last != range.first) text += "-" + std::to_string(range.last);
  }
  const bool is_one = ranks.size() == 1 && ranks[0].first == ranks[0].last;
  return (is_one ? "rank " : "ranks ") + text;
}

std::string text_of(const ProcessInfo& process) {
  std::string text = "host " + printable(process.host);
  if (process.pid != 0) text += ", pid " + std::to_string(process.pid);
  if (!process.label.empty()) text += ", label " + printable(process.label);
  return text;
}

}  // namespace muster::json
