#pragma once

#include <optional>
#include <string_view>

namespace muster::auth {

/// The parts of a text between separators, one after the other; empty ones, too.
class Fields {
 public:
  Fields(std::string_view text, char separator) : rest_(text), separator_(separator) {}

  /// Nothing: that was the last one.
  std::optional<std::string_view> next() {
    if (!rest_) return {};
    const std::string_view text = *rest_;
    const std::size_t end = text.find(separator_);
    if (end == std::string_view::npos) {
      rest_.reset();
      return text;
    }
    rest_ = text.substr(end + 1);
    return text.substr(0, end);
  }

 private:
  std::optional<std::string_view> rest_;
  char separator_;
};

}  // namespace muster::auth
