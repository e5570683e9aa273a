#include "launch/expansion.h"

#include <algorithm>
#include <cctype>

namespace muster::launch {

namespace {

bool is_of_name(char letter) {
  return letter == '_' || std::isalnum(static_cast<unsigned char>(letter)) != 0;
}

const std::string* value_of(std::string_view name, const Variables& variables) {
  const auto found = std::find_if(variables.begin(), variables.end(),
                                  [name](const auto& each) { return each.first == name; });
  return found == variables.end() ? nullptr : &found->second;
}

}  // namespace

std::string expanded(std::string_view text, const Variables& variables) {
  std::string result;
  std::size_t at = 0;
  if (!text.empty() && text[0] == '~' && (text.size() == 1 || text[1] == '/')) {
    if (const std::string* const home = value_of("HOME", variables)) {
      result = *home;
      at = 1;
    }
  }
  while (at < text.size()) {
    if (text[at] != '$') {
      result += text[at++];
      continue;
    }
    const bool has_braces = at + 1 < text.size() && text[at + 1] == '{';
    const std::size_t begin = at + (has_braces ? 2 : 1);
    std::size_t end = begin;
    if (has_braces) {
      end = std::min(text.find('}', begin), text.size());
    } else {
      while (end < text.size() && is_of_name(text[end])) ++end;
    }
    const bool is_closed = !has_braces || end < text.size();
    const std::string* const value =
        is_closed && end > begin ? value_of(text.substr(begin, end - begin), variables) : nullptr;
    if (value == nullptr) {
      result += text[at++];
      continue;
    }
    result += *value;
    at = has_braces ? end + 1 : end;
  }
  return result;
}

}  // namespace muster::launch
