#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace muster::launch {

/// The variables of an environment, by name.
using Variables = std::map<std::string, std::string, std::less<>>;

/// The variable's value; null: it is not set.
inline const std::string* find_variable(const Variables& variables, std::string_view name) {
  const auto found = variables.find(name);
  return found == variables.end() ? nullptr : &found->second;
}

}  // namespace muster::launch
