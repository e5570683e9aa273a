#include "server/http/front/target.h"

#include <algorithm>

namespace muster::server::http {
namespace {

int value_of_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

/// prefix  in small letters
bool starts_with_in_any_case(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(), [](char small, char letter) {
           return letter == small ||
                  (letter >= 'A' && letter <= 'Z' && letter - 'A' + 'a' == small);
         });
}

bool is_control(char byte) {
  const auto code = static_cast<unsigned char>(byte);
  return code < 0x20 || code == 0x7f;
}

}  // namespace

std::optional<std::string> without_escapes(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      plain += text[at];
      continue;
    }
    if (at + 2 >= text.size()) return {};
    const int high = value_of_digit(text[at + 1]);
    const int low = value_of_digit(text[at + 2]);
    if (high < 0 || low < 0) return {};
    plain += static_cast<char>(high * 16 + low);
    at += 2;
  }
  return plain;
}

std::optional<Target> read_target(std::string_view text) {
  std::optional<std::string> host;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!starts_with_in_any_case(text, scheme)) continue;
    text.remove_prefix(scheme.size());
    host = text.substr(0, text.find_first_of("/?"));
    text.remove_prefix(host->size());
    if (!text.starts_with('/')) return {};
  }
  if (!text.starts_with('/')) return {};
  const std::size_t mark = std::min(text.find('?'), text.size());
  auto path = without_escapes(text.substr(0, mark));
  if (!path || std::any_of(path->begin(), path->end(), is_control)) return {};
  Target target{std::move(*path), {}, std::move(host)};
  if (mark < text.size()) target.query = text.substr(mark + 1);
  return target;
}

}  // namespace muster::server::http
