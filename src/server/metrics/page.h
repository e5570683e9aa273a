#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/time.h"
#include "server/metrics/metrics.h"

namespace muster::server {

enum class MetricType : std::uint8_t { gauge, counter, histogram, info };

/// A metric with all its samples; a name has its unit last, and not what its samples end with.
struct MetricFamily {
  MetricType type;
  std::string_view name;
  std::string_view unit;  ///< empty: it counts
  std::string_view help;
};

struct MetricLabel {
  std::string_view name;
  std::string_view value;
};
using MetricLabels = std::initializer_list<MetricLabel>;

/// Writes metrics in one of the formats, which differ in how families are named.
class MetricsPage {
 public:
  explicit MetricsPage(MetricsFormat format) : format_(format) {}

  /// What follows are its samples, up to the next one.
  void begin(const MetricFamily& family);
  void sample(MetricLabels labels, std::uint64_t value) {
    add(suffix_of_sample(), labels, {}, std::to_string(value));
  }
  void sample(MetricLabels labels, Duration value) {
    add(suffix_of_sample(), labels, {}, seconds(static_cast<std::uint64_t>(value.count())));
  }

  /// Those of a histogram; `labels` are the same for all of them.
  template <class Histogram>
  void samples(MetricLabels labels, const Histogram& histogram, const auto& bounds) {
    std::uint64_t sum = 0;
    for (std::size_t range = 0; range < bounds.size(); ++range) {
      sum += histogram.count(range);
      const auto end_us = static_cast<std::uint64_t>(bounds[range].count());
      add("_bucket", labels, seconds(end_us), std::to_string(sum));
    }
    sum += histogram.count(bounds.size());
    add("_bucket", labels, "+Inf", std::to_string(sum));
    add("_sum", labels, {}, seconds(histogram.sum_us()));
    add("_count", labels, {}, std::to_string(sum));
  }

  /// All of it; nothing comes after it.
  std::string text() &&;

 private:
  static std::string seconds(std::uint64_t us);
  std::string_view suffix_of_sample() const;
  void describe(std::string_view what, std::string_view text);
  /// end  of a bucket; empty: it is none
  void add(std::string_view suffix, MetricLabels labels, std::string_view end,
           std::string_view value);

  MetricsFormat format_;
  MetricFamily family_{};
  std::string text_;
};

}  // namespace muster::server
