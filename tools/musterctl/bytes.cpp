#include "bytes.h"

#include <algorithm>
#include <cstdint>

namespace musterctl {
namespace {

std::uint32_t byte_at(std::string_view bytes, std::size_t index) {
  return static_cast<unsigned char>(bytes[index]);
}

/// The length of the character that `bytes` begins with; 0: that is none of UTF-8.
std::size_t character_length(std::string_view bytes) {
  const std::uint32_t lead = byte_at(bytes, 0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc0 || lead >= 0xf8 || bytes.size() < length) return 0;
  std::uint32_t point = lead & (0xffU >> (length + 1));
  for (std::size_t index = 1; index < length; ++index) {
    if ((byte_at(bytes, index) & 0xc0U) != 0x80) return 0;
    point = point << 6U | (byte_at(bytes, index) & 0x3fU);
  }
  const std::uint32_t least = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
  const bool is_surrogate = point >= 0xd800 && point < 0xe000;
  return point >= least && point <= 0x10ffff && !is_surrogate ? length : 0;
}

/// Those of ASCII, and U+0080 to U+009F, which some terminals obey as well.
bool is_control(std::string_view character) {
  const std::uint32_t lead = byte_at(character, 0);
  if (character.size() == 1) return lead < 0x20 || lead == 0x7f;
  return character.size() == 2 && lead == 0xc2 && byte_at(character, 1) < 0xa0;
}

}  // namespace

std::string printable(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  while (!bytes.empty()) {
    const std::size_t length = character_length(bytes);
    const std::string_view next = bytes.substr(0, std::max<std::size_t>(length, 1));
    bytes.remove_prefix(next.size());
    if (length > 0 && !is_control(next)) {
      text += next;
      continue;
    }
    for (std::size_t index = 0; index < next.size(); ++index) {
      const std::uint32_t byte = byte_at(next, index);
      text += {'\\', 'x', digits[byte >> 4U], digits[byte & 15U]};
    }
  }
  return text;
}

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t length = character_length(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

std::string base64(std::string_view bytes) {
  constexpr char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
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

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char letter) {
    return (static_cast<unsigned char>(letter) & 0xc0U) != 0x80;
  }));
}

}  // namespace musterctl
