#include "server/service.h"

#include <algorithm>

#include "base/monotonic_now.h"
#include "net/loop.h"

// Life cycle: start -> turns, each caused by a connection or by the clock -> stop: first the
// sessions of others get time to go by themselves, then everybody is told and gets time to hear
// it, then everything is closed. When something is thrown in a turn, such as for want of memory,
// the engine may have done half of what it was about to: then all is closed at once, since a
// server that is gone is better than one that is wrong.

namespace muster::server {
namespace {

constexpr Duration tick_max = std::chrono::milliseconds(250);  // the engine notices longer gaps
constexpr Duration tick_when_leaving = std::chrono::milliseconds(10);
constexpr Duration leaving_time_at_stop = std::chrono::milliseconds(500);

}  // namespace

struct Service::Stopping {
  std::string reason;
  base::Instant deadline{};
  std::uint64_t own_sessions = 0;
  std::function<void(std::uint64_t left)> done;
  bool has_told = false;
  std::uint64_t left = 0;
};

Service::Service(net::Loop& loop, Settings settings)
    : loop_(loop),
      settings_(std::move(settings)),
      log_(settings_.logger),
      engine_(settings_.core),
      frame_limits_{settings_.core.limits.request_bytes_max(),
                    settings_.core.limits.essential_bytes_max()},
      newcomers_(settings_.hello_connections_max, settings_.hello_connections_per_address_max),
      timer_(loop) {}

Service::~Service() {
  close_everything();
  if (failure_number_ == 0) return;
  loop_.forget(failure_number_);
  loop_.end_busy_poll(settings_.busy_poll);
}

void Service::start(std::vector<net::Listening> listenings) {
  if (closed_) return;  // before it came to that
  failure_number_ = loop_.on_failure([weak = weak_from_this()](auto why) {
    if (const auto self = weak.lock()) self->fail(why);
  });
  if (settings_.busy_poll > Duration::zero()) loop_.begin_busy_poll(settings_.busy_poll);
  const std::string farewell =
      refusal(ErrorCode::busy, "the server is full: it has no file descriptor left");
  for (net::Listening& listening : listenings) {
    log_.line(LogLevel::info, "listening on " + to_string(listening.address()));
    listeners_.push_back(net::Listener::create(loop_, std::move(listening), farewell));
    listeners_.back()->start({[this](net::UniqueFd fd, const net::SocketAddress& address) {
                                accepted(std::move(fd), address);
                              },
                              [this](const std::string& detail) {
                                log_.bounded_line(LogLevel::warning, "out of resources: " + detail,
                                                  base::monotonic_now());
                              }});
  }
  tick();
}

// The clock.

/// The timer is moved only to fire earlier: a turn that changes no deadline costs nothing here.
void Service::arm_timer() {
  const bool is_leaving = stopping_ && stopping_->has_told;
  const base::Instant next = std::min({engine_.next_deadline(), newcomers_.next_deadline(),
                                       last_tick_ + (is_leaving ? tick_when_leaving : tick_max)});
  if (next >= timer_at_ || closed_) return;
  timer_at_ = next;
  timer_.set(next, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self && !self->closed_) self->tick();
  });
}

void Service::tick() {
  timer_at_ = base::far_future;
  last_tick_ = now_ = base::monotonic_now();
  apply(core::Advance{});
  close_overdue_newcomers();
  close_slow_peers();
  forget_left();
  control_accepting();
  sessions_may_have_ended_ = true;
  end_turn();
}

// The end.

void Service::stop(std::string reason, Duration timeout, std::uint64_t own_sessions,
                   std::function<void(std::uint64_t left)> done) {
  if (closed_ || stopping_) return done(0);
  now_ = base::monotonic_now();
  stopping_ = std::make_unique<Stopping>();
  stopping_->reason = std::move(reason);
  stopping_->deadline = base::deadline_after(now_, timeout);
  stopping_->own_sessions = own_sessions;
  stopping_->done = std::move(done);
  sessions_may_have_ended_ = true;
  end_turn();
}

void Service::continue_stopping() {
  if (closed_) return;
  if (!stopping_->has_told) {
    if (users() > stopping_->own_sessions && now_ < stopping_->deadline) return;
    stopping_->has_told = true;
    stopping_->left = tell_all(stopping_->reason, stopping_->own_sessions);
    stopping_->deadline = now_ + leaving_time_at_stop;
  }
  forget_left();
  if (!leaving_.empty() && now_ < stopping_->deadline) return;
  close_everything();
  stopping_->done(stopping_->left);
}

std::uint64_t Service::stop_now(const std::string& reason, std::uint64_t own_sessions) {
  if (closed_) return 0;
  now_ = base::monotonic_now();
  const std::uint64_t left =
      stopping_ && stopping_->has_told ? stopping_->left : tell_all(reason, own_sessions);
  close_everything();
  return left;
}

/// The sessions that lose something when the server stops: observers only look.
std::uint64_t Service::users() const {
  const core::Counts counts = engine_.counts();
  return counts.sessions - counts.observers;
}

/// returns  how many sessions of others there were
std::uint64_t Service::tell_all(const std::string& reason, std::uint64_t own_sessions) {
  const std::uint64_t sessions = users();
  for (const auto& listener : listeners_) listener->close();
  listeners_.clear();
  apply(core::Stop{reason});
  Error error;
  error.code = ErrorCode::unavailable;
  error.detail = reason;
  for (const ConnectionId id : peers_.ids()) {
    if (Peer* const peer = peers_.find(id)) refuse(*peer, error);
  }
  log_.line(LogLevel::info, "stopping: " + reason);
  return sessions - std::min(sessions, own_sessions);
}

/// May throw in its midst, and be called again.
void Service::fail(std::string_view why) {
  if (closed_ && !is_failing_) return;
  closed_ = is_failing_ = true;
  const std::string line = "the server has ended, and what it kept is lost: " + std::string(why);
  Error error;
  error.code = ErrorCode::resource_exhausted;
  error.decided_by = "server";
  error.detail.assign(line);
  release_everything();
  is_failing_ = false;
  log_.line(LogLevel::error, line);
  if (stopping_) stopping_->done(0);
  if (settings_.on_failure) settings_.on_failure(error);
}

void Service::close_everything() {
  if (closed_) return;
  closed_ = true;
  release_everything();
}

void Service::release_everything() {
  for (const auto& listener : listeners_) listener->close();
  listeners_.clear();
  for (const ConnectionId id : peers_.ids()) take_out(*peers_.find(id))->connection->close();
  for (const auto& connection : leaving_) connection->close();
  leaving_.clear();
  timer_.cancel();
}

}  // namespace muster::server
