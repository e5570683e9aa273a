#include "core/failure.h"

#include <cstdio>

namespace muster::core {

std::string printable(std::string_view bytes) {
  constexpr std::size_t shown_bytes_max = 64;
  std::string text = "'";
  for (const char c : bytes.substr(0, shown_bytes_max)) {
    if (c >= ' ' && c <= '~' && c != '\'' && c != '\\') {
      text += c;
      continue;
    }
    char escaped[5];
    std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(c));
    text += escaped;
  }
  text += bytes.size() > shown_bytes_max ? "'..." : "'";
  return text;
}

std::string in_seconds(Duration duration) {
  char text[48];
  std::snprintf(text, sizeof text, "%.6f", static_cast<double>(duration.count()) / 1e6);
  std::string seconds = text;
  seconds.erase(seconds.find_last_not_of('0') + 1);
  if (seconds.back() == '.') seconds.pop_back();
  return seconds + " s";
}

std::string describe(const ProcessInfo& process) {
  std::string text = process.host.empty() ? to_string(process.id) : process.host;
  if (process.pid != 0) text += ":" + std::to_string(process.pid);
  if (!process.label.empty()) text += " (" + process.label + ")";
  return text;
}

Error too_large(std::string_view what, std::uint64_t actual, std::string_view unit,
                std::uint64_t limit) {
  Error error = failure(ErrorCode::too_large, std::string(what));
  error.detail += " has " + std::to_string(actual) + " ";
  error.detail += unit;
  error.detail += ", the server takes at most " + std::to_string(limit);
  error.actual = actual;
  error.limit = limit;
  return error;
}

Error exhausted(std::string what, std::uint64_t actual, std::uint64_t limit) {
  Error error = failure(ErrorCode::resource_exhausted, std::move(what));
  error.actual = actual;
  error.limit = limit;
  return error;
}

Error memory_exhausted(Host& host, const Quota& quota, std::uint64_t bytes) {
  if (quota.is_short()) {
    return failure(ErrorCode::resource_exhausted, std::string(out_of_system_memory));
  }
  const Quota& refusing = quota.refusing(bytes);
  const bool of_server = &refusing == &host.quota();
  return exhausted(std::to_string(bytes) + " more bytes would pass the limit " +
                       (of_server ? "memory_bytes_max" : "namespace_memory_bytes_max") +
                       "; remove keys, or start the server with a higher one",
                   refusing.used_bytes(), refusing.limit_bytes());
}

}  // namespace muster::core
