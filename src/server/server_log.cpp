#include "server/server_log.h"

#include <algorithm>
#include <utility>

namespace muster::server {
namespace {

constexpr std::size_t accounts_max = 256;
constexpr int units_told_max = 16;  // a second

/// What one level of an account may be written: so many lines at once, then one in each interval.
struct Allowance {
  int burst;
  Duration interval;

  bool spend(base::Instant& paid_until, base::Instant now) const {
    const base::Instant paid = std::max(paid_until, now) + interval;
    if (paid - now > burst * interval) return false;
    paid_until = paid;
    return true;
  }
};

constexpr Allowance of_unit{256, std::chrono::milliseconds(100)};
constexpr Allowance of_all{4096, std::chrono::milliseconds(10)};

}  // namespace

void ServerLog::line(LogLevel level, const std::string& text) const {
  if (!has(level)) return;
  try {
    logger_(level, printable(text));
  } catch (...) {  // a logger has nobody to complain to
  }
}

ServerLog::Account& ServerLog::account_of(std::string_view unit) {
  const auto found = accounts_.find(unit);
  if (found != accounts_.end()) return found->second;
  return accounts_.size() < accounts_max ? accounts_[std::string(unit)] : others_;
}

bool ServerLog::admits(std::string_view unit, LogLevel level, base::Instant now) {
  if (!has(level)) return false;
  const auto place = static_cast<std::size_t>(level);
  Account& account = account_of(unit);
  if (of_unit.spend(account.paid_until[place], now) && of_all.spend(all_.paid_until[place], now)) {
    return true;
  }
  if (level >= LogLevel::warning) ++left_out_count_;
  ++account.left_out_count;
  account.left_out_level = std::max(account.left_out_level, level);
  return false;
}

void ServerLog::tell_left_out(base::Instant now) {
  if (now - told_ < std::chrono::seconds(1)) return;
  told_ = now;
  int told_count = 0;
  if (others_.left_out_count > 0) tell("other addresses", others_);
  for (auto each = accounts_.begin(); each != accounts_.end();) {
    Account& account = each->second;
    if (account.left_out_count > 0 && told_count < units_told_max) {
      tell(each->first, account);
      ++told_count;
    }
    const auto& paid = account.paid_until;
    const bool is_silent =
        account.left_out_count == 0 &&
        std::all_of(paid.begin(), paid.end(), [now](base::Instant until) { return until <= now; });
    each = is_silent ? accounts_.erase(each) : std::next(each);
  }
}

void ServerLog::tell(const std::string& unit, Account& account) const {
  const std::uint64_t count = std::exchange(account.left_out_count, 0);
  const LogLevel left_out_level = std::exchange(account.left_out_level, LogLevel::debug);
  line(left_out_level, unit + ": " + std::to_string(count) + " more lines were left out");
}

}  // namespace muster::server
