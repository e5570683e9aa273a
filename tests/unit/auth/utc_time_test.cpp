#include "auth/utc_time.h"

#include <chrono>
#include <string>

#include <doctest/doctest.h>

namespace {

using muster::auth::read_utc_time;
using muster::auth::UtcTime;
using std::chrono::seconds;

TEST_CASE("times of the calendar are read and written") {
  CHECK(read_utc_time("1970-01-01T00:00:00Z") == UtcTime(seconds(0)));
  CHECK(read_utc_time("2001-09-09T01:46:40Z") == UtcTime(seconds(1'000'000'000)));
  CHECK(read_utc_time("2024-02-29T23:59:59Z") == UtcTime(seconds(1'709'251'199)));
  for (const char* const text :
       {"1970-01-01T00:00:00Z", "2000-02-29T12:34:56Z", "2027-01-31T00:00:00Z",
        "2038-01-19T03:14:08Z", "9999-12-31T23:59:59Z"}) {
    CAPTURE(text);
    const auto time = read_utc_time(text);
    REQUIRE(time);
    CHECK(to_string(*time) == text);
  }
}

TEST_CASE("times that there are not, and other forms, are refused") {
  for (const char* const wrong :
       {"", "2027-01-31", "2027-01-31T00:00:00", "2027-01-31T00:00:00z", "2027-01-31 00:00:00Z",
        "2027-01-31T00:00:00+00:00", "2027-1-31T00:00:00Z", "2027-00-10T00:00:00Z",
        "2027-13-10T00:00:00Z", "2027-02-29T00:00:00Z", "2027-04-31T00:00:00Z",
        "2027-01-00T00:00:00Z", "2027-01-31T24:00:00Z", "2027-01-31T00:60:00Z",
        "2027-01-31T23:59:60Z", "1969-12-31T23:59:59Z", "-027-01-31T00:00:00Z",
        "20x7-01-31T00:00:00Z", "2027-01-31T00:00:00Z "}) {
    CAPTURE(wrong);
    CHECK_FALSE(read_utc_time(wrong));
  }
}

}  // namespace
