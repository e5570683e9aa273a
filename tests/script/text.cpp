#include "text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

namespace muster::script {
namespace {

/// Cuts `text` where `is_separator` holds outside of double quotes.
template <class IsSeparator>
std::vector<std::string> cut(std::string_view text, IsSeparator is_separator) {
  std::vector<std::string> parts(1);
  bool in_quotes = false;
  for (std::size_t index = 0; index < text.size(); ++index) {
    const char letter = text[index];
    if (in_quotes && letter == '\\' && index + 1 < text.size()) {
      parts.back() += letter;
      parts.back() += text[++index];
      continue;
    }
    if (letter == '"') in_quotes = !in_quotes;
    if (!in_quotes && is_separator(letter)) {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  if (in_quotes) throw ScriptError("a quote is not closed: " + std::string(text));
  return parts;
}

int digit_of(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  throw ScriptError("no lower-case hexadecimal digit: " + std::string(1, letter));
}

std::string unescaped(std::string_view text) {
  std::string bytes;
  for (std::size_t index = 0; index < text.size(); ++index) {
    if (text[index] != '\\') {
      bytes += text[index];
      continue;
    }
    const char letter = ++index < text.size() ? text[index] : '\0';
    if (letter == 'n') {
      bytes += '\n';
    } else if (letter == 'x' && index + 2 < text.size()) {
      bytes += static_cast<char>(digit_of(text[index + 1]) * 16 + digit_of(text[index + 2]));
      index += 2;
    } else if (letter == '"' || letter == '\\') {
      bytes += letter;
    } else {
      throw ScriptError("unknown escape in " + std::string(text));
    }
  }
  return bytes;
}

std::string escaped(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    const auto code = static_cast<unsigned char>(byte);
    if (byte == '"' || byte == '\\') {
      text += '\\';
      text += byte;
    } else if (byte == '\n') {
      text += "\\n";
    } else if (code < 0x20 || code >= 0x7f) {
      text += "\\x";
      text += digits[code >> 4];
      text += digits[code & 15];
    } else {
      text += byte;
    }
  }
  return text;
}

}  // namespace

std::vector<std::string> words_of(std::string_view line) {
  auto parts = cut(line, [](char letter) { return letter == ' ' || letter == '\t'; });
  std::erase_if(parts, [](const std::string& part) { return part.empty(); });
  return parts;
}

std::vector<std::string> items_of(std::string_view list) {
  if (list.empty()) return {};
  return cut(list, [](char letter) { return letter == ','; });
}

std::optional<Duration> duration_of(std::string_view word) {
  if (word == "0") return Duration::zero();
  std::size_t digits = 0;
  while (digits < word.size() &&
         (std::isdigit(static_cast<unsigned char>(word[digits])) != 0 || word[digits] == '.')) {
    ++digits;
  }
  if (digits == 0) return std::nullopt;
  constexpr std::array<std::pair<std::string_view, double>, 6> units = {
      {{"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"m", 60e6}, {"h", 3600e6}, {"d", 86400e6}}};
  for (const auto& [unit, microseconds] : units) {
    if (word.substr(digits) != unit) continue;
    const double number = std::stod(std::string(word.substr(0, digits)));
    return Duration(std::llround(number * microseconds));
  }
  return std::nullopt;
}

std::string text_of(Duration duration) {
  const auto count = duration.count();
  if (count < 0) return "-" + text_of(-duration);
  if (count == 0) return "0s";
  if (count % 1000 != 0) return std::to_string(count) + "us";
  if (count < 1000000) return std::to_string(count / 1000) + "ms";
  std::string text = std::to_string(count / 1000000);
  if (const auto rest = count / 1000 % 1000; rest != 0) {
    std::string decimals = std::to_string(1000 + rest).substr(1);
    while (decimals.back() == '0') decimals.pop_back();
    text += "." + decimals;
  }
  return text + "s";
}

std::int64_t number_of(std::string_view word) {
  std::int64_t number = 0;
  const char* const end = word.data() + word.size();
  const auto [stop, problem] = std::from_chars(word.data(), end, number);
  if (problem != std::errc() || stop != end || word.empty()) {
    throw ScriptError("not a number: " + std::string(word));
  }
  return number;
}

int int_of(std::string_view word) { return static_cast<int>(number_of(word)); }

std::string bytes_of(std::string_view word) {
  std::size_t times = 1;
  if (const auto star = word.rfind('*'); star != word.npos && star > 0 && word.back() != '"') {
    times = static_cast<std::size_t>(number_of(word.substr(star + 1)));
    word = word.substr(0, star);
  }
  std::string once;
  if (word.size() >= 2 && word.front() == '"' && word.back() == '"') {
    once = unescaped(word.substr(1, word.size() - 2));
  } else {
    once = std::string(word);
  }
  std::string bytes;
  bytes.reserve(once.size() * times);
  for (std::size_t count = 0; count < times; ++count) bytes += once;
  return bytes;
}

std::string whole_in_quotes(std::string_view text) { return "\"" + escaped(text) + "\""; }

std::string in_quotes(std::string_view bytes) {
  constexpr std::size_t shown_in_full = 48;
  if (bytes.size() <= shown_in_full) return whole_in_quotes(bytes);
  if (bytes.find_first_not_of(bytes.front()) == bytes.npos) {
    return "\"" + escaped(bytes.substr(0, 1)) + "\"*" + std::to_string(bytes.size());
  }
  return "\"" + escaped(bytes.substr(0, 16)) + "\"..." + std::to_string(bytes.size());
}

std::string name_or_quoted(std::string_view bytes) {
  const bool simple = !bytes.empty() && bytes.size() <= 48 &&
                      std::all_of(bytes.begin(), bytes.end(), [](unsigned char letter) {
                        return std::isalnum(letter) != 0 || letter == '_' || letter == '/' ||
                               letter == '.' || letter == ':';
                      });
  return simple ? std::string(bytes) : in_quotes(bytes);
}

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += separator;
    text += part;
  }
  return text;
}

}  // namespace muster::script
