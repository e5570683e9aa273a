#include "query.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace musterd {
namespace {

int value_of_hex(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

std::optional<std::string_view> Query::raw(std::string_view name) const {
  for (std::string_view rest = text_; !rest.empty();) {
    const std::string_view field = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), field.size() + 1));
    const std::string_view own = field.substr(0, field.find('='));
    if (own != name) continue;
    return field.substr(std::min(field.size(), own.size() + 1));
  }
  return std::nullopt;
}

std::string Query::problem(const std::vector<std::string_view>& names) const {
  std::vector<std::string_view> seen;
  for (std::string_view rest = text_; !rest.empty();) {
    const std::string_view field = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), field.size() + 1));
    const std::string_view own = field.substr(0, field.find('='));
    if (own.empty()) continue;
    if (std::find(names.begin(), names.end(), own) == names.end()) {
      std::string text = "there is no parameter " + muster::base::quoted_text(own) + " here";
      for (std::size_t at = 0; at < names.size(); ++at)
        text.append(at == 0 ? ", but " : at + 1 == names.size() ? " and " : ", ").append(names[at]);
      return text;
    }
    if (std::find(seen.begin(), seen.end(), own) != seen.end())
      return "the parameter " + std::string(own) + " is there twice";
    seen.push_back(own);
  }
  return {};
}

bool Query::has(std::string_view name) const { return raw(name).has_value(); }

std::optional<std::string> Query::value(std::string_view name) const {
  const auto text = raw(name);
  if (!text) return std::nullopt;
  std::string value;
  for (std::size_t at = 0; at < text->size(); ++at) {
    const char letter = (*text)[at];
    if (letter != '%') {
      value += letter == '+' ? ' ' : letter;
      continue;
    }
    if (at + 2 >= text->size()) return std::nullopt;
    const int high = value_of_hex((*text)[at + 1]);
    const int low = value_of_hex((*text)[at + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    value += static_cast<char>(high * 16 + low);
    at += 2;
  }
  return value;
}

std::optional<unsigned long long> Query::number(std::string_view name) const {
  const auto text = value(name);
  if (!text) return std::nullopt;
  unsigned long long number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return number;
}

}  // namespace musterd
