#include "json/bytes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "muster/log.h"

namespace muster::json {
namespace {

constexpr char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::uint32_t byte_at(std::string_view bytes, std::size_t index) {
  return static_cast<unsigned char>(bytes[index]);
}

struct Character {
  std::size_t length = 0;  ///< 0: it is none of UTF-8
  std::uint32_t point = 0;
};

/// The one that `bytes` begins with.
Character first_of(std::string_view bytes) {
  const std::uint32_t lead = byte_at(bytes, 0);
  if (lead < 0x80) return {1, lead};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc0 || lead >= 0xf8 || bytes.size() < length) return {};
  std::uint32_t point = lead & (0xffU >> (length + 1));
  for (std::size_t index = 1; index < length; ++index) {
    if ((byte_at(bytes, index) & 0xc0U) != 0x80) return {};
    point = point << 6U | (byte_at(bytes, index) & 0x3fU);
  }
  const std::uint32_t least = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
  const bool is_surrogate = point >= 0xd800 && point < 0xe000;
  if (point < least || point > 0x10ffff || is_surrogate) return {};
  return {length, point};
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t length = first_of(bytes).length;
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

std::string printable_json(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  while (!json.empty()) {
    const Character next = first_of(json);
    const std::string_view bytes = json.substr(0, std::max<std::size_t>(next.length, 1));
    json.remove_prefix(bytes.size());
    const bool is_plain = bytes == "\n" || (bytes[0] >= ' ' && bytes[0] <= '~');
    if (is_plain || printable(bytes) == bytes) {
      text += bytes;
    } else {  // none of those lies above U+FFFF
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x",
                    static_cast<unsigned>(next.point & 0xffffU));
      text += escape.data();
    }
  }
  return text;
}

std::string base64(std::string_view bytes) {
  std::string text;
  for (std::size_t first = 0; first < bytes.size(); first += 3) {
    const std::size_t count = std::min<std::size_t>(bytes.size() - first, 3);
    std::uint32_t bits = 0;
    for (std::size_t index = 0; index < 3; ++index) {
      bits = bits << 8U | (index < count ? byte_at(bytes, first + index) : 0);
    }
    for (std::size_t index = 0; index < 4; ++index) {
      text += index <= count ? letters[bits >> (18 - 6 * index) & 63U] : '=';
    }
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes;
  for (std::size_t first = 0; first < text.size(); first += 4) {
    std::uint32_t bits = 0;
    std::size_t count = 0;
    for (const char letter : text.substr(first, 4)) {
      const std::size_t value = std::string_view(letters).find(letter);
      if (value == std::string_view::npos) break;
      bits |= static_cast<std::uint32_t>(value) << (18 - 6 * count);
      ++count;
    }
    for (std::size_t index = 0; index + 1 < count; ++index) {
      bytes += static_cast<char>(bits >> (16 - 8 * index) & 255U);
    }
  }
  if (base64(bytes) != text) return std::nullopt;
  return bytes;
}

}  // namespace muster::json
