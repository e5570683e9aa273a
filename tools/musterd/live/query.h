#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace musterd {

/// What stands behind the "?" of a question: "a=b&c=d", with escapes.
class Query {
 public:
  explicit Query(std::string_view text) : text_(text) {}

  /// Of the first parameter of that name, without escapes; nothing: there is none, or it is wrong.
  std::optional<std::string> value(std::string_view name) const;
  /// The same, as a number; nothing also: it is none.
  std::optional<unsigned long long> number(std::string_view name) const;
  bool has(std::string_view name) const;
  /// What is wrong if these are the parameters that there may be, each once; empty: nothing.
  std::string problem(const std::vector<std::string_view>& names) const;

 private:
  std::optional<std::string_view> raw(std::string_view name) const;

  std::string_view text_;
};

}  // namespace musterd
