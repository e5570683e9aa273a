#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace muster::launch {

/// A decimal number from 0 to 2147483647, and nothing else.
inline std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || rest != end || value < 0 || text.front() == '-') return {};
  return value;
}

}  // namespace muster::launch
