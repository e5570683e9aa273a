#include "base/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "muster/log.h"

// What is printed comes from other processes: every line of a log and every message goes through
// `append_printable`.

MUSTER_BEGIN_NAMESPACE
namespace {

std::uint32_t byte_at(std::string_view bytes, std::size_t index) {
  return static_cast<unsigned char>(bytes[index]);
}

struct Character {
  std::size_t size = 1;
  std::uint32_t point = 0;
  bool is_valid = false;  ///< else it is one byte that is no UTF-8
};

/// The one that `bytes` begins with.
Character first_of(std::string_view bytes) {
  const std::uint32_t lead = byte_at(bytes, 0);
  if (lead < 0x80) return {1, lead, true};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc0 || lead >= 0xf8 || bytes.size() < size) return {};
  std::uint32_t point = lead & (0xffU >> (size + 1));
  for (std::size_t index = 1; index < size; ++index) {
    if ((byte_at(bytes, index) & 0xc0U) != 0x80) return {};
    point = point << 6U | (byte_at(bytes, index) & 0x3fU);
  }
  const std::uint32_t least = size == 2 ? 0x80 : size == 3 ? 0x800 : 0x10000;
  const bool is_surrogate = point >= 0xd800 && point < 0xe000;
  if (point < least || point > 0x10ffff || is_surrogate) return {};
  return {size, point, true};
}

/// Ends lines, moves a terminal's cursor, or turns the direction of text; or nobody sees it.
bool is_hidden(std::uint32_t point) {
  const auto is_within = [point](std::uint32_t first, std::uint32_t last) {
    return first <= point && point <= last;
  };
  return point < 0x20 || is_within(0x7f, 0x9f) || point == 0xad || point == 0x61c ||
         point == 0x180e || is_within(0x200b, 0x200f) || is_within(0x2028, 0x202e) ||
         is_within(0x2060, 0x206f) || point == 0xfeff;
}

/// A byte as "\x1b", another character as "\u200b"; none that is escaped lies above U+FFFF.
void append_escaped(std::string& text, Character character, std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  const bool is_byte = character.size == 1;
  const std::uint32_t point = is_byte ? byte_at(bytes, 0) : character.point;
  text += is_byte ? "\\x" : "\\u";
  for (unsigned bits = is_byte ? 8 : 16; bits != 0; bits -= 4)
    text += digits[point >> (bits - 4) & 15U];
}

/// also_escaped  characters of ASCII
/// shown_max     bytes of `bytes`, whole characters of them
/// returns       whether that was all
bool append_printable(std::string& text, std::string_view bytes, std::string_view also_escaped,
                      std::size_t shown_max) {
  std::size_t shown = 0;
  while (shown < bytes.size()) {
    const std::string_view rest = bytes.substr(shown);
    const Character next = first_of(rest);
    if (shown + next.size > shown_max) return false;
    const bool is_plain = next.is_valid && !is_hidden(next.point) &&
                          also_escaped.find(rest[0]) == std::string_view::npos;
    if (is_plain) {
      text += rest.substr(0, next.size);
    } else {
      append_escaped(text, next, rest);
    }
    shown += next.size;
  }
  return true;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  append_printable(line, text, {}, text.size());
  return line;
}

MUSTER_END_NAMESPACE

namespace muster::base {

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

namespace {

constexpr std::size_t shown_bytes_max = 128;

}  // namespace

std::string shown(std::string_view name) {
  std::string text;
  if (!append_printable(text, name, {}, shown_bytes_max)) text += "...";
  return text;
}

std::string shown_in_quotes(std::string_view name) {
  std::string text = "\"";
  std::size_t left = shown_bytes_max;
  while (!name.empty()) {
    const std::size_t size = std::min(name.find_first_of("\"\\"), name.size());
    if (!append_printable(text, name.substr(0, size), {}, left)) return text += "...\"";
    left -= size;
    name.remove_prefix(size);
    if (name.empty()) break;
    if (left == 0) return text += "...\"";
    text += {'\\', name[0]};
    name.remove_prefix(1);
    --left;
  }
  return text += '"';
}

std::string quoted_text(std::string_view bytes) {
  constexpr std::size_t quoted_bytes_max = 64;
  std::string text = "'";
  const bool is_whole = append_printable(text, bytes, "'\\", quoted_bytes_max);
  text += is_whole ? "'" : "'...";
  return text;
}

std::string hex_digits(std::uint64_t number) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text(16, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, number >>= 4U) {
    *digit = digits[number & 15U];
  }
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
