#include "server/stopping.h"

#include <algorithm>
#include <utility>

namespace muster::server {
void Stopping::begin(std::string reason, Duration timeout, std::uint64_t own_sessions, Done done) {
  reason_ = std::move(reason);
  deadline_ = base::deadline_after(driver_.now(), timeout);
  own_sessions_ = own_sessions;
  done_ = std::move(done);
}

void Stopping::hasten(Duration timeout) {
  if (!has_told_) deadline_ = std::min(deadline_, base::deadline_after(driver_.now(), timeout));
}

bool Stopping::is_over() {
  const base::Instant now = driver_.now();
  if (!has_told_) {
    if (users() > own_sessions_ && now < deadline_) return false;
    tell(reason_, own_sessions_);
    deadline_ = now + engine_.options().connections.leaving_time_at_stop;
  }
  connections_.look_at_leaving();
  return connections_.leaving_count() == 0 || now >= deadline_;
}

void Stopping::tell(const std::string& reason, std::uint64_t own_sessions) {
  if (std::exchange(has_told_, true)) return;
  const std::uint64_t sessions = users();
  left_ = sessions - std::min(sessions, own_sessions);
  world_.stop_listening();
  connections_.let_all_leave();
  driver_.apply(core::Stop{reason});
  Error error;
  error.code = ErrorCode::unavailable;
  error.detail = reason;
  while (!connections_.newcomers().empty()) {
    hellos_.refuse(connections_.newcomers().first(), error);
  }
  log_.tell_left_out(base::far_future);
  log_.line(LogLevel::info, "stopping: " + reason);
}

/// The sessions that lose something when the server stops: observers only look.
std::uint64_t Stopping::users() const {
  const core::Counts counts = engine_.counts();
  return counts.sessions - counts.observers;
}

}  // namespace muster::server
