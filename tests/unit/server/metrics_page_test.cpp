#include <array>
#include <string>

#include <doctest/doctest.h>

#include "base/histogram.h"
#include "server/metrics/page.h"

namespace {

using namespace muster;
using server::MetricsPage;
using server::MetricType;

constexpr auto page_bounds = std::to_array<Duration>({
    std::chrono::milliseconds(1),
    std::chrono::seconds(2),
});

std::string page_of(MetricsFormat format, const auto& write) {
  MetricsPage page(format);
  write(page);
  return std::move(page).text();
}

TEST_CASE("a label's value cannot end it, or its line") {
  const std::string text = page_of(MetricsFormat::prometheus, [](MetricsPage& page) {
    page.begin({MetricType::gauge, "a", "", "What it is."});
    page.sample({{"x", "one\"} 1\ntwo\\"}, {"y", ""}}, std::uint64_t{7});
  });
  CHECK(text ==
        "# TYPE a gauge\n"
        "# HELP a What it is.\n"
        "a{x=\"one\\\"} 1\\ntwo\\\\\",y=\"\"} 7\n");
}

TEST_CASE("a counter's family is named after its samples in the older format alone") {
  const auto write = [](MetricsPage& page) {
    page.begin({MetricType::counter, "a_seconds", "seconds", "What it is."});
    page.sample({}, Duration(std::chrono::microseconds(1'500'000)));
  };
  CHECK(page_of(MetricsFormat::prometheus, write) ==
        "# TYPE a_seconds_total counter\n"
        "# HELP a_seconds_total What it is.\n"
        "a_seconds_total 1.5\n");
  CHECK(page_of(MetricsFormat::openmetrics, write) ==
        "# TYPE a_seconds counter\n"
        "# UNIT a_seconds seconds\n"
        "# HELP a_seconds What it is.\n"
        "a_seconds_total 1.5\n"
        "# EOF\n");
}

TEST_CASE("what only informs is a gauge in the older format") {
  const auto write = [](MetricsPage& page) {
    page.begin({MetricType::info, "a", "", "What it is."});
    page.sample({{"version", "1"}}, std::uint64_t{1});
  };
  CHECK(page_of(MetricsFormat::prometheus, write) ==
        "# TYPE a_info gauge\n# HELP a_info What it is.\na_info{version=\"1\"} 1\n");
  CHECK(page_of(MetricsFormat::openmetrics, write) ==
        "# TYPE a info\n# HELP a What it is.\na_info{version=\"1\"} 1\n# EOF\n");
}

TEST_CASE("a histogram's buckets hold all that is not above their ends") {
  base::Histogram<page_bounds> times;
  for (const int ms : {0, 1, 2, 2000, 2001}) times.add(std::chrono::milliseconds(ms));
  const std::string text = page_of(MetricsFormat::prometheus, [&](MetricsPage& page) {
    page.begin({MetricType::histogram, "a_seconds", "seconds", "What it is."});
    page.samples({{"kind", "b"}}, times, page_bounds);
  });
  CHECK(text ==
        "# TYPE a_seconds histogram\n"
        "# HELP a_seconds What it is.\n"
        "a_seconds_bucket{kind=\"b\",le=\"0.001\"} 2\n"
        "a_seconds_bucket{kind=\"b\",le=\"2.0\"} 4\n"
        "a_seconds_bucket{kind=\"b\",le=\"+Inf\"} 5\n"
        "a_seconds_sum{kind=\"b\"} 4.004\n"
        "a_seconds_count{kind=\"b\"} 5\n");
}

}  // namespace
