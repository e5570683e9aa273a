#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"
#include "muster/log.h"

namespace muster::server {

/// The application's logger, if there is one, with a bound on what strangers can make it say.
class ServerLog {
 public:
  explicit ServerLog(Logger logger) : logger_(std::move(logger)) {}

  /// Whether it is worth making a line.
  bool is_on() const { return static_cast<bool>(logger_); }

  void line(LogLevel level, const std::string& text) const;

  /// As `line`, for what a newcomer or a broken peer can cause: so many a second, the others are
  /// counted and told of later.
  void bounded_line(LogLevel level, const std::string& text, base::Instant now);

 private:
  Logger logger_;
  base::Instant second_{};  ///< when the count began
  std::uint32_t count_ = 0;
  LogLevel left_out_level_ = LogLevel::debug;  ///< the highest of those lines
};

}  // namespace muster::server
