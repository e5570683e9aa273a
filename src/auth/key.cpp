#include "auth/key.h"

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <optional>

#include "base/failure.h"

// Bytes of a key are only ever in a `Key`, but for the text that `base64` returns: what is read is
// decoded into its place, and what is refused is overwritten with the key that it would have been.

namespace muster::auth {
namespace {

constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view no_base64 =
    "a key is base64 of 32 to 64 bytes, such as `musterctl keygen` makes";

std::optional<std::uint32_t> value_of_digit(char digit) {
  const std::size_t value = base64_digits.find(digit);
  if (value == std::string_view::npos) return {};
  return static_cast<std::uint32_t>(value);
}

/// The text without its padding; nothing if the padding is not what belongs to that length.
std::optional<std::string_view> without_padding(std::string_view base64) {
  const std::size_t digits_count = base64.find('=');
  if (digits_count == std::string_view::npos) return base64;
  const std::string_view padding = base64.substr(digits_count);
  const bool is_right = base64.size() % 4 == 0 && (padding == "=" || padding == "==");
  if (!is_right) return {};
  return base64.substr(0, digits_count);
}

}  // namespace

Result<Key> Key::of(std::string_view bytes) {
  if (bytes.size() > bytes_max) {
    return base::failure(ErrorCode::invalid_argument, "a key has at most 64 bytes");
  }
  Key key(bytes.size());
  std::copy(bytes.begin(), bytes.end(), key.bytes_.data());
  if (const std::string_view why = key.weakness(); !why.empty()) {
    return base::failure(ErrorCode::invalid_argument, std::string(why));
  }
  return key;
}

Result<Key> Key::read(std::string_view base64) {
  const auto wrong = [] {
    return base::failure(ErrorCode::invalid_argument, std::string(no_base64));
  };
  const auto digits = without_padding(base64);
  if (!digits || digits->size() % 4 == 1 || digits->size() * 3 / 4 > bytes_max) return wrong();
  Key key(digits->size() * 3 / 4);
  std::size_t size = 0;
  std::uint32_t bits = 0;
  int bits_count = 0;
  for (const char digit : *digits) {
    const auto value = value_of_digit(digit);
    if (!value) return wrong();
    bits = (bits << 6U | *value) & 0xfffU;
    bits_count += 6;
    if (bits_count < 8) continue;
    bits_count -= 8;
    key.bytes_.data()[size] = static_cast<unsigned char>(bits >> bits_count & 0xffU);
    ++size;
  }
  // Else one key had several texts.
  if ((bits & ((1U << bits_count) - 1U)) != 0) return wrong();
  if (const std::string_view why = key.weakness(); !why.empty()) {
    return base::failure(ErrorCode::invalid_argument, std::string(why));
  }
  return key;
}

std::string Key::base64() const {
  const std::size_t size = bytes_.size();
  std::string text;
  text.reserve((size + 2) / 3 * 4);
  for (std::size_t at = 0; at < size; at += 3) {
    const std::size_t count = std::min<std::size_t>(3, size - at);
    std::uint32_t bits = 0;
    for (std::size_t index = 0; index < 3; ++index) {
      bits = bits << 8U | (index < count ? bytes_.data()[at + index] : 0U);
    }
    for (std::size_t index = 0; index < 4; ++index) {
      text += index <= count ? base64_digits[bits >> (18U - 6U * index) & 0x3fU] : '=';
    }
  }
  return text;
}

bool operator==(const Key& a, const Key& b) {
  const std::size_t size = a.bytes_.size();
  if (size != b.bytes_.size()) return false;
  volatile std::uint8_t difference = 0;
  for (std::size_t index = 0; index < size; ++index) {
    difference =
        static_cast<std::uint8_t>(difference | (a.bytes_.data()[index] ^ b.bytes_.data()[index]));
  }
  return difference == 0;
}

std::string_view Key::weakness() const {
  if (bytes_.size() < bytes_min) return "a key has at least 32 bytes; `musterctl keygen` makes one";
  std::bitset<256> seen;
  for (std::size_t index = 0; index < bytes_.size(); ++index) seen.set(bytes_.data()[index]);
  if (seen.count() >= different_bytes_min) return {};
  return "a key has at least 8 different bytes; `musterctl keygen` makes a random one";
}

}  // namespace muster::auth
