#include "server/door/expiry.h"

#include <chrono>
#include <string>

#include <doctest/doctest.h>

// Warnings of certificates and credential lines that expire, in imagined time.

namespace {

using namespace std::chrono_literals;
using muster::LogLevel;
using muster::auth::UtcTime;
using muster::server::ExpiryWarnings;
using muster::server::Validity;
using std::chrono::hours;
using Of = Validity::Of;

constexpr hours day{24};
const UtcTime today{day * 365 * 50};

Validity valid_for(std::chrono::seconds left, Of of = Of::server) {
  return {of, "NAME", today - day, today + left};
}

ExpiryWarnings warnings_of(std::vector<Validity> all) {
  ExpiryWarnings warnings;
  warnings.replace(std::move(all));
  return warnings;
}

TEST_CASE("a certificate is warned of at the start, and once a day from 14 days before") {
  ExpiryWarnings warnings = warnings_of({valid_for(13 * day + 1h)});
  auto lines = warnings.take(today);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].first == LogLevel::warning);
  CHECK(lines[0].second.starts_with("NAME expires in 13 d, at 2020-01-02T01:00:00Z"));
  CHECK(warnings.take(today + 1s).empty());
  CHECK(warnings.take(today + day - 1s).empty());
  lines = warnings.take(today + day);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].second.starts_with("NAME expires in 12 d"));
  CHECK(warnings.take(today + day + 1s).empty());
}

TEST_CASE("what is valid for longer is not mentioned until then") {
  ExpiryWarnings warnings = warnings_of({valid_for(15 * day)});
  CHECK(warnings.take(today).empty());
  CHECK(warnings.take(today + day - 1s).empty());
  CHECK(warnings.take(today + day).size() == 1);
}

TEST_CASE("the moment in which it expires is told, although a warning was logged on that day") {
  ExpiryWarnings warnings = warnings_of({valid_for(2h)});
  CHECK(warnings.take(today)[0].second.starts_with("NAME expires in 2 h"));
  CHECK(warnings.take(today + 2h).empty());  // its last second
  const auto lines = warnings.take(today + 2h + 1s);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].first == LogLevel::error);
  CHECK(lines[0].second.starts_with("NAME expired at "));
}

TEST_CASE("one that is not valid yet is an error until it is") {
  ExpiryWarnings warnings = warnings_of({{Of::authority, "NAME", today + 3h, today + 300 * day}});
  const auto lines = warnings.take(today);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].first == LogLevel::error);
  CHECK(lines[0].second.starts_with("NAME is not valid before "));
  CHECK(warnings.take(today + 3h).empty());
  CHECK(warnings.take(today + 2 * day).empty());
}

TEST_CASE("a credential line that has expired is a warning") {
  const auto lines = warnings_of({valid_for(-1s, Of::credential)}).take(today);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].first == LogLevel::warning);
}

TEST_CASE("others in their place are warned of at once, and a clock that is set back stops none") {
  ExpiryWarnings warnings = warnings_of({valid_for(3h)});
  CHECK(warnings.take(today).size() == 1);
  warnings.replace({valid_for(4h)});
  CHECK(warnings.take(today + 1s).size() == 1);
  CHECK(warnings.take(today - 2 * day + 4h).size() == 1);
}

TEST_CASE("of very many lines 20 are logged, and how many more there are") {
  const auto lines = warnings_of(std::vector<Validity>(50, valid_for(1h))).take(today);
  REQUIRE(lines.size() == 21);
  CHECK(lines.back().second.starts_with("30 more certificates"));
}

TEST_CASE("the metric is the first of its kind, and of credential lines the next") {
  const ExpiryWarnings warnings =
      warnings_of({valid_for(9h), valid_for(5h), valid_for(-1h, Of::authority),
                   valid_for(-1h, Of::credential), valid_for(7h, Of::credential)});
  CHECK(warnings.expiry(Of::server, today) == today + 5h);
  CHECK(warnings.expiry(Of::authority, today) == today - 1h);
  CHECK(warnings.expiry(Of::credential, today) == today + 7h);
  CHECK_FALSE(warnings.expiry(Of::credential, today + 8h));
}

}  // namespace
