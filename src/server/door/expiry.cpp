#include "server/door/expiry.h"

#include <algorithm>
#include <utility>

namespace muster::server {
namespace {

using auth::UtcTime;
using std::chrono::hours;
using std::chrono::seconds;

/// What no longer works, and what to do.
std::string advice_for(Validity::Of of, bool is_usable) {
  const std::string read_again = "; the file is read again when it changes";
  switch (of) {
    case Validity::Of::server:
      if (is_usable) return ": renew it" + read_again;
      return ": clients with certificates refuse this server; renew it" + read_again;
    case Validity::Of::authority:
      if (is_usable) return ": renew it" + read_again;
      return ": clients that it has signed are refused; renew or remove it" + read_again;
    case Validity::Of::credential: break;
  }
  if (is_usable) return ": give the line a later not-after, if its clients stay" + read_again;
  return ": its clients begin no session; give the line a later not-after, or remove it" +
         read_again;
}

std::string time_left(seconds left) {
  const auto whole = std::chrono::duration_cast<hours>(left).count();
  return whole < 24 ? std::to_string(whole) + " h" : std::to_string(whole / 24) + " d";
}

/// Passes the line to `add`, unless it is valid for long.
template <class Add>
void tell_of(const Validity& each, UtcTime now, const Add& add) {
  const bool is_line = each.of == Validity::Of::credential;
  const LogLevel unusable = is_line ? LogLevel::warning : LogLevel::error;
  const std::string advice = advice_for(each.of, now >= each.not_before && now <= each.not_after);
  if (now < each.not_before) {
    add(LogLevel::error, each.name + " is not valid before " + to_string(each.not_before) + advice);
  } else if (now > each.not_after) {
    add(unusable, each.name + " expired at " + to_string(each.not_after) + advice);
  } else if (now >= each.not_after - ExpiryWarnings::warned_before) {
    add(LogLevel::warning, each.name + " expires in " + time_left(each.not_after - now) + ", at " +
                               to_string(each.not_after) + advice);
  }
}

}  // namespace

void ExpiryWarnings::replace(std::vector<Validity> all) {
  all_ = std::move(all);
  next_ = {};
}

ExpiryWarnings::Lines ExpiryWarnings::take(UtcTime now) {
  if (now < next_ && next_ - now <= interval) return {};  // else the clock was set back
  next_ = now + interval;
  Lines lines;
  const auto add = [&lines](LogLevel level, std::string text) {
    lines.emplace_back(level, std::move(text));
  };
  for (const Validity& each : all_) {
    for (const UtcTime change :
         {each.not_before, each.not_after - warned_before, each.not_after + seconds(1)}) {
      if (change > now) next_ = std::min(next_, change);
    }
    tell_of(each, now, add);
  }
  if (lines.size() > lines_max) {
    const std::size_t more_count = lines.size() - lines_max;
    lines.resize(lines_max);
    add(LogLevel::warning, std::to_string(more_count) +
                               " more certificates and credential lines have expired, or expire "
                               "within 14 d");
  }
  return lines;
}

std::optional<UtcTime> ExpiryWarnings::expiry(Validity::Of of, UtcTime now) const {
  std::optional<UtcTime> first;
  for (const Validity& each : all_) {
    if (each.of != of || (of == Validity::Of::credential && now > each.not_after)) continue;
    if (!first || each.not_after < *first) first = each.not_after;
  }
  return first;
}

}  // namespace muster::server
