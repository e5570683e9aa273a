#include "server/service.h"

#include <algorithm>
#include <utility>

#include "net/tls/failure.h"
#include "server/metrics/publish.h"

// Life cycle: turns -> `stop`, see Stopping -> everything is closed. When something is thrown in a
// turn, such as for want of memory, the engine may have done half of what it was about to: then all
// is closed at once, since a server that is gone is better than one that is wrong.

namespace muster::server {
namespace {

constexpr Duration tick_when_leaving = std::chrono::milliseconds(10);
constexpr Duration tick_when_watched = std::chrono::milliseconds(125);
/// What a connection takes in the C library's heap that is not charged.
constexpr std::uint64_t connection_bytes = 2048;

}  // namespace

Service::Service(World& world, Settings settings)
    : world_(world),
      lateness_(world),
      settings_(std::move(settings)),
      log_(settings_.logger, settings_.core.rim.log_level),
      engine_(settings_.core),
      holdings_(engine_.memory().room, engine_.inspector().rim_counts()),
      sender_(world_, engine_.memory().replies, holdings_, engine_.inspector().rim_counts(),
              settings_.core.connections),
      work_(world_, engine_.inspector().rim_counts(), settings_.core.connections),
      connections_(handler_, settings_.core, engine_.memory().all, engine_.memory().replies,
                   engine_.inspector().rim_counts(), sender_, work_),
      driver_(engine_, settings_, connections_, sender_, holdings_, log_),
      entrance_(world_, settings_, driver_, connections_, log_),
      frames_(driver_, connections_, sender_, work_, holdings_, log_, settings_.core.connections),
      handler_(*this, driver_, connections_, entrance_, frames_, work_, log_),
      stopping_(world_, engine_, driver_, connections_, entrance_.hellos(), log_),
      watch_(settings_.watch) {}

Service::~Service() {
  close_everything();
  if (settings_.metrics) settings_.metrics->publisher.close();
  watch_.close();
}

std::string Service::farewell(Arrival::Kind kind) const {
  if (kind == Arrival::Kind::tcpstore) return {};  // it has no word for that
  if (kind == Arrival::Kind::tls) return net::tls::alert_of_unable();
  return entrance_.hellos().refusal(ErrorCode::busy,
                                    "the server is full: it has no file descriptor left");
}

// Turns.

void Service::begin_turn() {
  const base::Instant now = world_.now();
  driver_.begin_turn(now);
  const Duration length = lateness_.turn_begins(now);
  if (length > settings_.core.gap_max) driver_.apply(lateness_.event(length));
}

void Service::tick() {
  if (is_closed()) return;
  begin_turn();
  next_tick_ = base::far_future;
  last_tick_ = driver_.now();
  lateness_.ticks();
  const net::TurnStats turns = world_.turn_stats();
  driver_.counts().turn_us_max = static_cast<std::uint64_t>(turns.longest.count());
  driver_.counts().long_turns = turns.long_count;
  log_.tell_left_out(last_tick_);
  driver_.apply(core::Advance{});
  publish_figures(settings_, engine_.inspector(), log_, turns.times, last_tick_);
  watch_.tick(engine_.inspector(), last_tick_,
              [&] { return make_figures(settings_, engine_.inspector(), log_, turns.times); });
  if (watch_.go_on(engine_.inspector(), last_tick_)) world_.wake_soon();
  entrance_.hellos().judge_overdue();
  driver_.let_slow_go();
  frames_.continue_postponed();
  connections_.look_at_leaving();
  sessions_may_have_ended_ = true;
  end_turn();
  if (connections_.handshakes().has_waiting()) world_.wake_soon();
  if (auto version = entrance_.look_for_credentials()) change_credentials(std::move(*version));
  entrance_.warn_of_expiry();
}

void Service::continue_turn() {
  if (is_closed()) return;
  begin_turn();
  for (Peer* peer : sender_.take_continuing()) {
    if (!peer->is_gone) frames_.go_on(*peer);
  }
  if (frames_.may_continue_postponed()) frames_.continue_postponed();
  do_backlog();
  if (watch_.go_on(engine_.inspector(), driver_.now())) world_.wake_soon();
  const std::vector<core::ConnectionId> readers = handler_.handle_waiting();
  if (work_.has_waiting()) world_.wake_soon();
  end_turn();
  for (const core::ConnectionId id : readers) handler_.read(id);
  if (is_closed()) return;
  entrance_.shake_hands();
  set_timer();
}

/// A bounded piece; the next one follows in the next turn, so that others are served between.
void Service::do_backlog() {
  if (!engine_.has_backlog()) return;
  const std::uint64_t before = driver_.work();
  driver_.apply(core::Continue{work_.backlog_work_max()});
  work_.spend(driver_.work() - before);
}

void Service::accepted(std::shared_ptr<net::Channel> connection, const net::UnitId& unit,
                       const Arrival& arrival) {
  begin_turn();
  handler_.accepted(std::move(connection), unit, arrival);
  set_timer();
}

bool Service::make_room() {
  begin_turn();
  return entrance_.hellos().turn_one_out();
}

/// Everything that was queued leaves, and the timer is right.
void Service::end_turn() {
  if (connections_.has_gone()) sessions_may_have_ended_ = true;
  if (std::exchange(sessions_may_have_ended_, false)) continue_stopping();
  sender_.flush();
  driver_.end_turn();
  connections_.bury();
  note_memory();
  if (engine_.has_backlog() || frames_.may_continue_postponed()) world_.wake_soon();
  set_timer();
}

/// A process that does other things, too, sees to its heap itself.
void Service::note_memory() {
  if (!settings_.is_alone) return;
  const core::ServerMemory& memory = engine_.memory();
  const std::size_t connections = connections_.peers().count() + connections_.newcomers().count();
  heap_.note(memory.all.used_bytes() + memory.freed.bytes() + connections * connection_bytes,
             driver_.now());
}

/// The timer is moved only to fire earlier: a turn that changes no deadline costs nothing here.
void Service::set_timer() {
  Duration tick = stopping_.has_told() ? tick_when_leaving : settings_.core.gap_max / 2;
  if (watch_.is_watched(last_tick_)) tick = std::min(tick, tick_when_watched);
  const base::Instant next =
      std::min({engine_.next_deadline(), connections_.newcomers().next_deadline(),
                entrance_.next_time(), last_tick_ + tick});
  if (next >= next_tick_ || is_closed()) return;
  next_tick_ = next;
  world_.wake_at(next);
}

// Who is known.

RollChange Service::change_credentials(Door::Version version) {
  RollChange change = settings_.door->change_to(std::move(version));
  log_.line(LogLevel::info, "credentials were read: " + summary_of(change));
  if (change.regrant.empty() || is_closed()) return change;
  begin_turn();
  driver_.apply(core::Regrant{change.regrant});
  end_turn();
  return change;
}

void Service::configure(const core::Configure& event) {
  if (is_closed()) return;
  begin_turn();
  driver_.apply(event);
  end_turn();
}

// The end.

void Service::stop(std::string reason, Duration timeout, std::uint64_t own_sessions,
                   Stopping::Done done) {
  if (is_closed()) return done(0);
  begin_turn();
  if (stopping_.has_begun()) {
    stopping_.hasten(timeout);
    done(0);
  } else {
    stopping_.begin(std::move(reason), timeout, own_sessions, std::move(done));
  }
  sessions_may_have_ended_ = true;
  end_turn();
}

void Service::continue_stopping() {
  if (is_closed() || !stopping_.has_begun() || !stopping_.is_over()) return;
  close_everything();
  stopping_.finish(stopping_.left());
}

std::uint64_t Service::stop_now(const std::string& reason, std::uint64_t own_sessions) {
  if (is_closed()) return 0;
  begin_turn();
  stopping_.tell(reason, own_sessions);
  close_everything();
  return stopping_.left();
}

/// May throw in its midst, and be called again.
void Service::fail(std::string_view why) {
  if (state_ == State::closed) return;
  state_ = State::failing;
  const std::string line = "the server has ended, and what it kept is lost: " + std::string(why);
  Error error;
  error.code = ErrorCode::resource_exhausted;
  error.decided_by = "server";
  error.detail.assign(line);
  release_everything();
  connections_.bury();
  state_ = State::closed;
  log_.line(LogLevel::error, line);
  stopping_.finish(0);
  if (settings_.on_failure) settings_.on_failure(error);
}

void Service::close_everything() {
  if (is_closed()) return;
  state_ = State::closed;
  log_.tell_left_out(base::far_future);
  release_everything();
}

void Service::release_everything() {
  world_.stop_listening();
  connections_.close_all();
  world_.wake_at(base::far_future);
}

}  // namespace muster::server
