#include "server/service.h"

#include <algorithm>
#include <utility>

// Life cycle: turns -> `stop`, see Stopping -> everything is closed. When something is thrown in a
// turn, such as for want of memory, the engine may have done half of what it was about to: then all
// is closed at once, since a server that is gone is better than one that is wrong.

namespace muster::server {
namespace {

constexpr Duration tick_max = std::chrono::milliseconds(250);  // the engine notices longer gaps
constexpr Duration tick_when_leaving = std::chrono::milliseconds(10);

}  // namespace

Service::Service(World& world, Settings settings)
    : world_(world),
      lateness_(world),
      settings_(std::move(settings)),
      log_(settings_.logger),
      engine_(settings_.core),
      sender_(world_, engine_.quota(), engine_.rim_counts(), settings_.core.connections),
      connections_(*this, settings_.core, engine_.quota(), engine_.rim_counts(), sender_),
      driver_(engine_, settings_, connections_, sender_, log_),
      hellos_(driver_, connections_, log_, settings_.core),
      frames_(driver_, connections_, sender_, log_, settings_.core.connections),
      stopping_(world_, engine_, driver_, connections_, hellos_, log_) {}

Service::~Service() { close_everything(); }

std::string Service::farewell() const {
  return hellos_.refusal(ErrorCode::busy, "the server is full: it has no file descriptor left");
}

// Turns.

void Service::begin_turn() {
  const base::Instant now = world_.now();
  driver_.begin_turn(now);
  const Duration length = lateness_.turn_begins(now);
  if (length > settings_.core.gap_max) driver_.apply(lateness_.event(length));
}

void Service::tick() {
  if (closed_) return;
  begin_turn();
  timer_at_ = base::far_future;
  last_tick_ = driver_.now();
  lateness_.ticks();
  const World::Turns turns = world_.turns();
  driver_.counts().turn_us_max = static_cast<std::uint64_t>(turns.longest.count());
  driver_.counts().long_turns = turns.long_count;
  log_.tell_left_out(last_tick_);
  driver_.apply(core::Advance{});
  hellos_.refuse_overdue();
  driver_.let_slow_go();
  connections_.look_at_leaving();
  sessions_may_have_ended_ = true;
  end_turn();
}

void Service::continue_turn() {
  if (closed_) return;
  begin_turn();
  core::Chain<Peer> continuing;
  continuing.append_all(sender_.continuing());
  while (!continuing.empty()) {
    Peer& peer = continuing.first();
    peer.continuing.leave();
    frames_.go_on(peer);
  }
  end_turn();
}

void Service::accepted(std::shared_ptr<net::Channel> connection, const net::UnitId& unit_id) {
  begin_turn();
  Unit& unit = connections_.unit(unit_id);
  if (log_.admits(unit.name, LogLevel::debug, driver_.now())) {
    log_.line(LogLevel::debug, connection->peer() + ": accepted");
  }
  Newcomer& newcomer = connections_.add(std::move(connection), unit, driver_.now());
  if (connections_.are_too_many()) hellos_.turn_one_out();
  newcomer.connection->start(newcomer);
  set_timer();
}

bool Service::make_room() {
  begin_turn();
  return hellos_.turn_one_out();
}

void Service::received(Newcomer& newcomer, std::string_view bytes) {
  begin_turn();
  const HelloReader::Read read = hellos_.received(newcomer, bytes);
  if (read.peer != nullptr && !read.rest.empty() && !read.peer->is_gone) {
    frames_.received_behind_hello(*read.peer, read.rest);
  }
  end_turn();
}

void Service::closed(Newcomer& newcomer, net::CloseCause cause, const std::string& detail) {
  begin_turn();
  if (log_.admits(newcomer.unit->name, LogLevel::debug, driver_.now())) {
    log_.line(LogLevel::debug, newcomer.connection->peer() + ": ended: " + detail);
  }
  ++(cause == net::CloseCause::by_peer ? driver_.counts().ended : driver_.counts().broken);
  connections_.forget(newcomer);
  end_turn();
}

void Service::received(Peer& peer, std::string_view bytes) {
  begin_turn();
  frames_.received(peer, bytes);
  end_turn();
}

void Service::drained(Peer& peer) {
  begin_turn();
  frames_.drained(peer);
  end_turn();
}

void Service::closed(Peer& peer, net::CloseCause cause, const std::string& detail) {
  begin_turn();
  const bool is_known = !peer.session.empty() && !peer.is_observer;
  const LogLevel level = is_known ? LogLevel::info : LogLevel::debug;
  if (log_.admits(peer.unit->name, level, driver_.now())) {
    log_.line(level, name_of(peer) + ": ended: " + detail);
  }
  connections_.forget(peer);
  const bool by_peer = cause == net::CloseCause::by_peer;
  ++(by_peer ? driver_.counts().ended : driver_.counts().broken);
  driver_.apply(core::Disconnected{
      peer.id, by_peer ? core::DisconnectCause::closed : core::DisconnectCause::lost});
  end_turn();
}

/// Everything that was queued leaves, and the timer is right.
void Service::end_turn() {
  if (connections_.has_gone()) sessions_may_have_ended_ = true;
  if (std::exchange(sessions_may_have_ended_, false)) continue_stopping();
  sender_.flush();
  driver_.let_overfull_go();
  connections_.bury();
  set_timer();
}

/// The timer is moved only to fire earlier: a turn that changes no deadline costs nothing here.
void Service::set_timer() {
  const base::Instant next =
      std::min({engine_.next_deadline(), connections_.newcomers().next_deadline(),
                last_tick_ + (stopping_.has_told() ? tick_when_leaving : tick_max)});
  if (next >= timer_at_ || closed_) return;
  timer_at_ = next;
  world_.wake_at(next);
}

// The end.

void Service::stop(std::string reason, Duration timeout, std::uint64_t own_sessions,
                   Stopping::Done done) {
  if (closed_ || stopping_.has_begun()) return done(0);
  begin_turn();
  stopping_.begin(std::move(reason), timeout, own_sessions, std::move(done));
  sessions_may_have_ended_ = true;
  end_turn();
}

void Service::continue_stopping() {
  if (closed_ || !stopping_.has_begun() || !stopping_.is_over()) return;
  close_everything();
  stopping_.finish(stopping_.left());
}

std::uint64_t Service::stop_now(const std::string& reason, std::uint64_t own_sessions) {
  if (closed_) return 0;
  begin_turn();
  stopping_.tell(reason, own_sessions);
  close_everything();
  return stopping_.left();
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
  connections_.bury();
  is_failing_ = false;
  log_.line(LogLevel::error, line);
  stopping_.finish(0);
  if (settings_.on_failure) settings_.on_failure(error);
}

void Service::close_everything() {
  if (closed_) return;
  closed_ = true;
  log_.tell_left_out(base::far_future);
  release_everything();
}

void Service::release_everything() {
  world_.stop_listening();
  connections_.close_all();
  world_.wake_at(base::far_future);
}

}  // namespace muster::server
