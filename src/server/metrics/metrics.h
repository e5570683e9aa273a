#pragma once

#include <string>

#include "muster/metrics.h"
#include "server/metrics/figures.h"

namespace muster::server {

/// The figures as Prometheus reads them: its text format, version 0.0.4, or OpenMetrics 1.0, which
/// it asks for. docs/metrics.md has a table of all metrics.
///
/// Of each operation it tells how often it went well, also if it never did; of other outcomes those
/// that there were. No label comes from a client: how many samples there are has a bound.
///
/// cost  some 20 KiB of text, in some hundred microseconds
std::string metrics_text(const Figures& figures, MetricsFormat format);

}  // namespace muster::server
