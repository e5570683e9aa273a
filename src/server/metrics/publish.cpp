#include "server/metrics/publish.h"

#include <chrono>
#include <memory>
#include <new>
#include <utility>

namespace muster::server {

std::shared_ptr<Figures> make_figures(const Settings& settings, const core::Inspector& inspector,
                                      const ServerLog& log, const net::TurnTimes& turns) {
  auto figures = std::make_shared<Figures>();
  figures->engine = inspector.report();
  figures->turns = turns;
  figures->log_lines_left_out = log.left_out_count();
  if (settings.log_lines_dropped) figures->log_lines_dropped = settings.log_lines_dropped();
  figures->started = settings.started;
  figures->taken = std::chrono::system_clock::now();
  if (settings.door) {
    const auto expiry = [&door = *settings.door](Validity::Of of) {
      const std::optional<auth::UtcTime> time = door.expiry(of);
      return time ? std::optional(time->time_since_epoch()) : std::nullopt;
    };
    figures->server_certificate_expiry = expiry(Validity::Of::server);
    figures->authority_certificate_expiry = expiry(Validity::Of::authority);
    figures->credential_expiry = expiry(Validity::Of::credential);
  }
  const core::Options& options = inspector.options();
  figures->memory_bytes_max = options.memory_bytes_max;
  figures->connections_max = options.connections.connections_max;
  figures->hello_connections_max = options.connections.hello_connections_max;
  figures->sessions_max = options.sessions_max;
  figures->name_spaces_max = options.name_spaces.count_max;
  return figures;
}

/// Without memory there are none: nobody may end the server by looking at it.
void publish_figures(const Settings& settings, const core::Inspector& inspector,
                     const ServerLog& log, const net::TurnTimes& turns, base::Instant now) try {
  if (!settings.metrics || !settings.metrics->publisher.is_due(now)) return;
  settings.metrics->publisher.publish(make_figures(settings, inspector, log, turns), now);
} catch (const std::bad_alloc&) {
}

}  // namespace muster::server
