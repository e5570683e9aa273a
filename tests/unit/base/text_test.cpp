#include "base/text.h"

#include <chrono>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace {

using muster::RankRange;
using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
namespace base = muster::base;

TEST_CASE("a measured time is rounded to what tells it apart") {
  CHECK(base::rounded(microseconds(-5)) == "0 us");
  CHECK(base::rounded(microseconds(999)) == "999 us");
  CHECK(base::rounded(microseconds(1499)) == "1 ms");
  CHECK(base::rounded(microseconds(999'499)) == "999 ms");
  CHECK(base::rounded(microseconds(999'500)) == "1.0 s");
  CHECK(base::rounded(milliseconds(1550)) == "1.6 s");
  CHECK(base::rounded(hours(1)) == "3600.0 s");
}

TEST_CASE("a time that was set is told exactly") {
  CHECK(base::in_seconds(seconds(30)) == "30 s");
  CHECK(base::in_seconds(milliseconds(250)) == "0.25 s");
  CHECK(base::in_seconds(microseconds(1)) == "0.000001 s");
  CHECK(base::in_seconds(seconds(0)) == "0 s");
}

TEST_CASE("control characters are made visible, other bytes stay") {
  CHECK(base::one_line("a\nb\x7f") == "a\\x0ab\\x7f");
  CHECK(base::one_line("Zürich") == "Zürich");
}

TEST_CASE("quoted bytes are printable and at most 64 of them are shown") {
  CHECK(base::quoted("it's") == "'it\\x27s'");
  CHECK(base::quoted("\xff\\") == "'\\xff\\x5c'");
  CHECK(base::quoted(std::string(64, 'a')) == "'" + std::string(64, 'a') + "'");
  CHECK(base::quoted(std::string(65, 'a')) == "'" + std::string(64, 'a') + "'...");
}

TEST_CASE("ranges of ranks are listed; past sixteen ranges the other ranks are counted") {
  CHECK(base::text_of(std::vector<RankRange>{}) == "");
  CHECK(base::text_of({RankRange{3, 5}, RankRange{9, 9}}) == "3-5, 9");
  std::vector<RankRange> many;
  for (int rank = 0; rank < 17; ++rank) many.push_back({rank * 3, rank * 3});
  many.push_back({100, 102});
  const std::string text = base::text_of(many);
  CHECK(text.substr(text.size() - 13) == "45 and 4 more");
}

}  // namespace
