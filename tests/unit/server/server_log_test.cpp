#include "server/server_log.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace std::chrono_literals;
using muster::LogLevel;
using muster::base::Instant;
using muster::server::ServerLog;

struct Fixture {
  Fixture()
      : log([this](LogLevel level, std::string_view line) { lines.emplace_back(level, line); }) {}

  int write(std::string_view unit, LogLevel level, int times) {
    int written = 0;
    for (int time = 0; time < times; ++time) written += log.admits(unit, level, now) ? 1 : 0;
    return written;
  }

  Instant now{1000s};
  std::vector<std::pair<LogLevel, std::string>> lines;
  ServerLog log;
};

TEST_CASE("a unit has so many lines of each level at once, and then ten a second") {
  Fixture fixture;
  CHECK(fixture.write("10.0.0.1", LogLevel::info, 1000) == 256);
  CHECK(fixture.write("10.0.0.1", LogLevel::warning, 1000) == 256);
  CHECK(fixture.write("10.0.0.2", LogLevel::info, 1000) == 256);
  fixture.now += 3s;
  CHECK(fixture.write("10.0.0.1", LogLevel::info, 1000) == 30);
}

TEST_CASE("what was left out is told once a second, by unit and with its highest level") {
  Fixture fixture;
  fixture.write("10.0.0.1", LogLevel::warning, 258);
  fixture.write("10.0.0.1", LogLevel::debug, 257);
  fixture.write("10.0.0.2", LogLevel::info, 256);
  fixture.log.tell_left_out(fixture.now);
  fixture.log.tell_left_out(fixture.now + 999ms);
  REQUIRE(fixture.lines.size() == 1);
  CHECK(fixture.lines[0].first == LogLevel::warning);
  CHECK(fixture.lines[0].second == "10.0.0.1: 3 more lines were left out");
  fixture.write("10.0.0.1", LogLevel::debug, 1);
  fixture.log.tell_left_out(fixture.now + 1s);
  REQUIRE(fixture.lines.size() == 2);
  CHECK(fixture.lines[1].first == LogLevel::debug);
}

TEST_CASE("any number of units together have a bound, too, and take bounded memory") {
  Fixture fixture;
  int written = 0;
  for (int unit = 0; unit < 100'000; ++unit) {
    written += fixture.write(std::to_string(unit), LogLevel::info, 2);
  }
  CHECK(written >= 256);
  CHECK(written <= 4096);
  for (int second = 0; second < 60; ++second) {
    fixture.now += 1s;
    fixture.log.tell_left_out(fixture.now);
  }
  CHECK(fixture.lines.size() > 0);
  CHECK(fixture.lines.size() <= 60 * 17);
  fixture.lines.clear();
  fixture.log.tell_left_out(fixture.now + 1s);
  CHECK(fixture.lines.empty());
}

}  // namespace
