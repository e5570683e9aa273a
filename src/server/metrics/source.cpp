#include "server/metrics/source.h"

#include <utility>

#include "server/metrics/metrics.h"

MUSTER_BEGIN_NAMESPACE

std::string_view content_type_of(MetricsFormat format) {
  return format == MetricsFormat::openmetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

Metrics::Metrics(std::shared_ptr<Source> source) : source_(std::move(source)) {}

std::string Metrics::text(MetricsFormat format, Duration wait_max) const {
  const auto figures = source_->publisher.latest(wait_max);
  return figures == nullptr ? std::string() : server::metrics_text(*figures, format);
}

MUSTER_END_NAMESPACE
