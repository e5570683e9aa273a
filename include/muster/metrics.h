#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "muster/config.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// prometheus: the text format of Prometheus, 0.0.4; openmetrics: OpenMetrics 1.0.
enum class MetricsFormat : std::uint8_t { prometheus, openmetrics };

/// For the header Content-Type of an answer that has such a text.
MUSTER_API std::string_view content_type_of(MetricsFormat format);

/// What a server counts, for those who watch it: see docs/metrics.md. A handle, which may outlive
/// the server; copies are the same.
///
/// threads  any
class MUSTER_API Metrics {
 public:
  /// The figures of a moment within the last 1.5 s, or as old as they are when the server has told
  /// no newer ones within `wait_max`: it does so twice a second for a minute after each question,
  /// so who asks at least once a minute does not wait.
  ///
  /// returns  a whole page; empty: the server has told none yet, or is gone
  /// cost     some 20 KiB of text, in some hundred microseconds; the server copies 10 KiB
  std::string text(MetricsFormat format = MetricsFormat::prometheus,
                   Duration wait_max = std::chrono::seconds(1)) const;

  struct Source;
  explicit Metrics(std::shared_ptr<Source> source);

 private:
  std::shared_ptr<Source> source_;
};

MUSTER_END_NAMESPACE
