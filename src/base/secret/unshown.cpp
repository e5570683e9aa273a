#include "base/secret/unshown.h"

#include <unistd.h>

#include <utility>

#include "base/failure.h"
#include "muster/detail/secret_text.h"

namespace muster::base {
namespace {

/// One less than the shortest key has, so that a key of which a character is missing is not shown.
constexpr int row_min = 42;

bool is_between(char letter, char first, char last) { return letter >= first && letter <= last; }

}  // namespace

bool looks_secret(std::string_view text) {
  constexpr std::string_view token = "muster-http-";
  constexpr std::string_view private_key = "-----BEGIN ";
  if (text.find(token) != text.npos || text.find(private_key) != text.npos) return true;
  int count = 0;
  bool has_small = false;
  bool has_capital = false;
  for (const char letter : text) {
    const bool is_small = is_between(letter, 'a', 'z');
    const bool is_capital = is_between(letter, 'A', 'Z');
    const bool is_other = is_between(letter, '0', '9') || letter == '+' || letter == '/';
    if (!is_small && !is_capital && !is_other) {
      count = 0;
      has_small = has_capital = false;
      continue;
    }
    has_small |= is_small;
    has_capital |= is_capital;
    if (++count >= row_min && has_small && has_capital) return true;
  }
  return false;
}

std::string shown_unless_secret(std::string_view text) {
  return looks_secret(text) ? "(not shown, since it looks like a key)" : std::string(text);
}

std::optional<Error> refuse_secret(std::string_view option, std::string_view text) {
  std::string complaint = detail::complaint_of_secret(option, text);
  if (complaint.empty()) return std::nullopt;
  return failure(ErrorCode::invalid_argument, std::move(complaint));
}

std::optional<Error> refuse_secret_path(std::string_view option, const std::string& path) {
  std::size_t end = path.size();
  while (end > 0 && ::access(path.substr(0, end).c_str(), F_OK) != 0) {
    const std::size_t slash = path.rfind('/', end - 1);
    end = slash == path.npos ? 0 : slash;
  }
  return refuse_secret(option, std::string_view(path).substr(end));
}

std::string_view without_line_end(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

}  // namespace muster::base

MUSTER_BEGIN_NAMESPACE

std::string detail::complaint_of_secret(std::string_view option, std::string_view text) {
  if (!base::looks_secret(text)) return {};
  return std::string(option) +
         ": its value looks like a key, and is not shown. A client takes a line with a key in the "
         "variable MUSTER_CREDENTIAL, or a file with it by MUSTER_CREDENTIAL_FILE; a server a file "
         "by MUSTER_CREDENTIALS. Replace that key, because it is now known";
}

MUSTER_END_NAMESPACE
