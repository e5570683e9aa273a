#include "server/server_log.h"

#include <algorithm>

namespace muster::server {
namespace {

constexpr std::uint32_t lines_per_second = 10;

}  // namespace

void ServerLog::line(LogLevel level, const std::string& text) const {
  if (!logger_) return;
  try {
    logger_(level, printable(text));
  } catch (...) {  // a logger has nobody to complain to
  }
}

void ServerLog::bounded_line(LogLevel level, const std::string& text, base::Instant now) {
  if (!logger_) return;
  if (now - second_ >= std::chrono::seconds(1)) {
    if (count_ > lines_per_second) {
      line(left_out_level_,
           std::to_string(count_ - lines_per_second) + " more lines about peers were left out");
    }
    second_ = now;
    count_ = 0;
    left_out_level_ = LogLevel::debug;
  }
  if (++count_ <= lines_per_second) return line(level, text);
  left_out_level_ = std::max(left_out_level_, level);
}

}  // namespace muster::server
