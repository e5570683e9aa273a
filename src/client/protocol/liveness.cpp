#include "client/protocol/liveness.h"

#include <algorithm>

namespace muster::client::protocol {
namespace {

/// A server that asks for more would keep us busy with nothing else.
constexpr Duration heartbeat_min = std::chrono::milliseconds(10);

}  // namespace

void Liveness::note_event(Instant now) {
  if (did_not_run(now)) {
    ran_again_ = now;
    heard_ = now;  // bytes may have come meanwhile
  }
  last_event_ = now;
}

void Liveness::begin(const wire::ServerLimits& limits, Instant now) {
  is_connected_ = true;
  heartbeat_interval_ = std::max(limits.heartbeat, heartbeat_min);
  session_timeout_ = limits.session_timeout;
  heartbeat_at_ = now + heartbeat_interval_;
}

bool Liveness::did_not_run(Instant now) const {
  return is_connected_ && now - last_event_ > 2 * heartbeat_interval_;
}

bool Liveness::has_just_run_again(Instant proven, Instant now) const {
  return ran_again_ > proven && now - ran_again_ < patience();
}

void Liveness::await_next_heartbeat(Instant now) {
  heartbeat_at_ += heartbeat_interval_;
  if (heartbeat_at_ <= now) heartbeat_at_ = now + heartbeat_interval_;
}

Instant Liveness::falls_silent_at(const Lease& lease) const {
  const auto since = lease.waiting_since();
  if (!is_connected_ || !since) return base::far_future;
  return std::max(*since, heard_) + patience();
}

/// How long a server that can be reached may take to be heard. Each connection is waited for twice
/// as long as the one before, until one answers: on the new one all requests are sent from their
/// beginning, and a large one would never get through.
Duration Liveness::patience() const {
  const Duration least = std::max(session_timeout_ / 5, 2 * heartbeat_interval_);
  const Duration most = std::max(least, session_timeout_ - session_timeout_ / 5);
  const int factor = 1 << std::min(vain_count_, 2);
  return least > most / factor ? most : least * factor;
}

}  // namespace muster::client::protocol
