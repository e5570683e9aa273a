#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/time.h"
#include "muster/log.h"

namespace muster::server {

/// The application's logger, if there is one, with a bound on what strangers can make it say.
///
/// Each unit has an account for each level: so many lines at once, then so many a second; and there
/// is one account for all units together. What does not fit is counted and told of once a second.
/// The account of a unit that is silent is closed when it has nothing left to tell; of so many
/// units that not each has an account, those that came last share one.
class ServerLog {
 public:
  /// lowest  the least important level that is logged; none: nothing is
  explicit ServerLog(Logger logger, std::optional<LogLevel> lowest = LogLevel::debug)
      : logger_(std::move(logger)), lowest_(number_of(lowest)) {}

  /// Whether it is worth making a line.
  bool is_on() const { return logger_ && lowest_ != number_of(std::nullopt); }
  void set_lowest(std::optional<LogLevel> lowest) { lowest_ = number_of(lowest); }
  /// threads  any
  bool has(LogLevel level) const { return logger_ && static_cast<int>(level) >= lowest_; }

  /// Of the server itself, or one that was admitted.
  void line(LogLevel level, const std::string& text) const;

  /// Whether a line that `unit` has caused may be written; if it may not it is counted. It is best
  /// made only then.
  bool admits(std::string_view unit, LogLevel level, base::Instant now);

  /// Warnings and errors that may not, since the start. Information is left out where a healthy job
  /// starts or ends, too: 600 ranks of one host begin 600 sessions.
  std::uint64_t left_out_count() const { return left_out_count_; }

  /// Tells of the lines that were left out, unless it has just done so.
  void tell_left_out(base::Instant now);

 private:
  static constexpr std::size_t levels = 4;
  struct Account {
    /// By level: until when the lines that were written will have been paid for.
    std::array<base::Instant, levels> paid_until{};
    std::uint64_t left_out_count = 0;
    LogLevel left_out_level = LogLevel::debug;  ///< the highest of those lines
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  static int number_of(std::optional<LogLevel> level) {
    return level ? static_cast<int>(*level) : static_cast<int>(levels);
  }

  Account& account_of(std::string_view unit);
  void tell(const std::string& unit, Account& account) const;

  Logger logger_;
  std::atomic<int> lowest_;  ///< `levels`: nothing
  std::unordered_map<std::string, Account, Hash, std::equal_to<>> accounts_;
  Account others_;  ///< of units without an account of their own
  Account all_;
  base::Instant told_{};
  std::uint64_t left_out_count_ = 0;
};

}  // namespace muster::server
