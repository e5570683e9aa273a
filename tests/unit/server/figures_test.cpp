#include "server/metrics/figures.h"

#include <memory>

#include <doctest/doctest.h>

#include "core/engine.h"
#include "server/metrics/publish.h"

namespace {

using namespace std::chrono_literals;
using namespace muster;
using base::Instant;
using server::Figures;

TEST_CASE("figures are published when somebody has asked, with the limits and the log's count") {
  server::Settings settings;
  settings.core.sessions_max = 17;
  settings.metrics = std::make_shared<Metrics::Source>();
  core::Engine engine(settings.core);
  server::ServerLog log([](LogLevel, std::string_view) {});
  const Instant start{1000s};
  int left_out = 0;
  for (int line = 0; line < 1000; ++line) {
    left_out += log.admits("10.0.0.1", LogLevel::warning, start) ? 0 : 1;
    log.admits("10.0.0.1", LogLevel::info, start);  // no gap that an operator should hear of
  }
  REQUIRE(left_out > 0);
  net::TurnTimes turns;
  turns.add(3ms);
  engine.apply(core::Advance(), start);
  engine.inspector().rim_counts().accepted = 5;

  const auto publish = [&](Instant now) {
    server::publish_figures(settings, engine.inspector(), log, turns, now);
  };
  publish(start);
  CHECK(settings.metrics->publisher.latest() == nullptr);  // which asks
  publish(start);
  const auto figures = settings.metrics->publisher.latest();
  REQUIRE(figures != nullptr);
  CHECK(figures->sessions_max == 17);
  CHECK(figures->memory_bytes_max == settings.core.memory_bytes_max);
  CHECK(figures->log_lines_left_out == static_cast<std::uint64_t>(left_out));
  CHECK(figures->turns.sum_us() == 3000);
  CHECK(figures->engine.snapshot.rim.accepted == 5);
  CHECK(figures->taken >= figures->started);

  publish(start + 499ms);
  CHECK(settings.metrics->publisher.latest() == figures);
  publish(start + 500ms);
  CHECK(settings.metrics->publisher.latest() != figures);
}

TEST_CASE("a server of which nobody shows anything publishes nothing") {
  server::Settings settings;
  core::Engine engine(settings.core);
  const server::ServerLog log{Logger()};
  server::publish_figures(settings, engine.inspector(), log, net::TurnTimes(), Instant{1000s});
  CHECK(settings.metrics == nullptr);
}

}  // namespace
