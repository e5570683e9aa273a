#include "auth/utc_time.h"

#include <cstddef>
#include <cstdio>

namespace muster::auth {
namespace {

constexpr std::string_view form_of_time = "0000-00-00T00:00:00Z";  // a zero is any digit

bool has_form_of_time(std::string_view text) {
  if (text.size() != form_of_time.size()) return false;
  for (std::size_t index = 0; index < text.size(); ++index) {
    const bool is_digit = text[index] >= '0' && text[index] <= '9';
    const bool is_right =
        form_of_time[index] == '0' ? is_digit : text[index] == form_of_time[index];
    if (!is_right) return false;
  }
  return true;
}

int number_at(std::string_view text, std::size_t at, std::size_t digits_count) {
  int number = 0;
  for (const char digit : text.substr(at, digits_count)) number = number * 10 + (digit - '0');
  return number;
}

}  // namespace

std::optional<UtcTime> read_utc_time(std::string_view text) {
  if (!has_form_of_time(text)) return {};
  const std::chrono::year_month_day date(
      std::chrono::year(number_at(text, 0, 4)),
      std::chrono::month(static_cast<unsigned>(number_at(text, 5, 2))),
      std::chrono::day(static_cast<unsigned>(number_at(text, 8, 2))));
  const int hour = number_at(text, 11, 2);
  const int minute = number_at(text, 14, 2);
  const int second = number_at(text, 17, 2);
  const bool is_time = hour < 24 && minute < 60 && second < 60;
  if (!date.ok() || date.year() < std::chrono::year(1970) || !is_time) return {};
  return UtcTime(std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(hour) +
                 std::chrono::minutes(minute) + std::chrono::seconds(second));
}

std::string to_string(UtcTime time) {
  const auto whole = time.time_since_epoch();
  const auto days = std::chrono::floor<std::chrono::days>(whole);
  const std::chrono::year_month_day date{std::chrono::sys_days(days)};
  const std::chrono::hh_mm_ss clock(whole - days);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text;
}

}  // namespace muster::auth
