#pragma once

#include "muster/metrics.h"
#include "server/metrics/figures.h"
#include "server/metrics/publisher.h"

MUSTER_BEGIN_NAMESPACE

/// What handles have of a server.
struct Metrics::Source {
  server::Publisher<server::Figures> publisher;
};

MUSTER_END_NAMESPACE
