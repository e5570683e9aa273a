#include "base/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace muster::base {
namespace {

void append_escaped(std::string& text, char character) {
  constexpr char digits[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(character);
  text += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
}

}  // namespace

std::string rounded(Duration duration) {
  const auto microseconds = std::max<Duration::rep>(duration.count(), 0);
  if (microseconds < 1000) return std::to_string(microseconds) + " us";
  if (microseconds < 999'500) return std::to_string((microseconds + 500) / 1000) + " ms";
  const auto tenths = microseconds / 100'000 + (microseconds % 100'000 >= 50'000 ? 1 : 0);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

std::string in_seconds(Duration duration) {
  char text[48];
  std::snprintf(text, sizeof text, "%.6f", static_cast<double>(duration.count()) / 1e6);
  std::string seconds = text;
  seconds.erase(seconds.find_last_not_of('0') + 1);
  if (seconds.back() == '.') seconds.pop_back();
  return seconds + " s";
}

std::string one_line(std::string_view text) {
  std::string line;
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte >= 0x20 && byte != 0x7f) {
      line += character;
    } else {
      append_escaped(line, character);
    }
  }
  return line;
}

std::string quoted(std::string_view bytes) {
  constexpr std::size_t shown_bytes_max = 64;
  std::string text = "'";
  for (const char character : bytes.substr(0, shown_bytes_max)) {
    const bool is_plain = character >= ' ' && character <= '~';
    if (is_plain && character != '\'' && character != '\\') {
      text += character;
    } else {
      append_escaped(text, character);
    }
  }
  text += bytes.size() > shown_bytes_max ? "'..." : "'";
  return text;
}

std::string text_of(const std::vector<RankRange>& ranges) {
  constexpr std::size_t shown_ranges_max = 16;
  std::string text;
  std::int64_t untold = 0;
  for (std::size_t index = 0; index < ranges.size(); ++index) {
    const auto [first, last] = ranges[index];
    if (index >= shown_ranges_max) {
      untold += std::int64_t{last} - first + 1;
      continue;
    }
    if (index > 0) text += ", ";
    text += std::to_string(first);
    if (last != first) text += "-" + std::to_string(last);
  }
  return untold > 0 ? text + " and " + std::to_string(untold) + " more" : text;
}

}  // namespace muster::base
