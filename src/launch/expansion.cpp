#include "launch/expansion.h"

#include <algorithm>
#include <cstddef>

namespace muster::launch {

namespace {

bool is_of_name(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '_';
}

/// What of `text`, which begins with "$", is a reference; `name`: to which variable. Empty: none.
struct Reference {
  std::string_view whole;
  std::string_view name;
};

Reference reference_at(std::string_view text) {
  if (text.size() > 1 && text[1] == '{') {
    const std::size_t end = text.find('}');
    if (end == text.npos) return {};
    return {text.substr(0, end + 1), text.substr(2, end - 2)};
  }
  const auto end = std::find_if_not(text.begin() + 1, text.end(), is_of_name);
  const auto size = static_cast<std::size_t>(end - text.begin());
  return {text.substr(0, size), text.substr(1, size - 1)};
}

/// The home folder in place of a leading "~", which is taken off `argument`.
std::string home_of(std::string_view& argument, const Variables& environment) {
  if (argument != "~" && argument.substr(0, 2) != "~/") return {};
  const std::string* const home = find_variable(environment, "HOME");
  if (home == nullptr) return {};
  argument.remove_prefix(1);
  std::string folder = *home;
  while (!folder.empty() && folder.back() == '/') folder.pop_back();
  return folder.empty() && argument.empty() ? "/" : folder;
}

}  // namespace

std::string expanded(std::string_view argument, const Variables& environment) {
  std::string text = home_of(argument, environment);
  while (!argument.empty()) {
    const std::size_t dollar = argument.find('$');
    text += argument.substr(0, dollar);
    if (dollar == argument.npos) break;
    argument.remove_prefix(dollar);
    const Reference reference = reference_at(argument);
    const std::string* const value =
        reference.name.empty() ? nullptr : find_variable(environment, reference.name);
    const std::size_t taken = std::max<std::size_t>(reference.whole.size(), 1);
    text += value != nullptr ? *value : std::string(argument.substr(0, taken));
    argument.remove_prefix(taken);
  }
  return text;
}

}  // namespace muster::launch
