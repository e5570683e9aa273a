#pragma once

#include <memory>

#include "base/time.h"
#include "core/inspector.h"
#include "net/loop.h"
#include "server/server_log.h"
#include "server/settings.h"

namespace muster::server {

/// What there is at the moment.
std::shared_ptr<Figures> make_figures(const Settings& settings, const core::Inspector& inspector,
                                      const ServerLog& log, const net::TurnTimes& turns);

/// Publishes what there is at the moment, if somebody has asked for it.
void publish_figures(const Settings& settings, const core::Inspector& inspector,
                     const ServerLog& log, const net::TurnTimes& turns, base::Instant now);

}  // namespace muster::server
