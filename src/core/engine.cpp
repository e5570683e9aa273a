#include "core/engine.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/session/failure.h"

// An event's life: time is observed -> the session that it comes from is marked as heard -> the
// rooms (table, groups) handle it and hand answers back through EngineServices -> they leave as
// effects, in the order in which they were made. A request that has to wait for room does not mark
// its session: it is tried again when nothing has arrived.
//
// Timers fire in Advance only. So what a client sent before a deadline and what was read after it
// is handled first; and after a time in which nothing was handled the rim drains its sockets before
// anybody is declared dead or late. If the process did not run then, it is nobody's silence.

namespace muster::core {
namespace {

constexpr int work_per_advance_max = 128;              ///< timers that fire, keys that expire
constexpr std::uint64_t steps_per_advance_max = 8192;  ///< then the next one goes on
constexpr int work_per_table_max = 64;  ///< keys of one table, then others have their turn

constexpr std::size_t given_back_bytes_per_step = 8192;

/// As much as the event has copied, and as it may still do.
void give_back(FreedMemory& freed, EffectList& effects) {
  const std::size_t copied_bytes_max = effects.work() * LongCopies::bytes_per_step;
  const std::size_t left_bytes =
      static_cast<std::size_t>(effects.work_left()) * given_back_bytes_per_step;
  effects.spend(freed.give_back(std::max(copied_bytes_max, left_bytes)) /
                given_back_bytes_per_step);
}

}  // namespace

Engine::Engine(Options options)
    : services_(std::move(options)),
      name_spaces_(services_),
      sessions_(services_, name_spaces_),
      inspector_(services_, name_spaces_, sessions_),
      operators_(services_, name_spaces_, sessions_) {}

// Waits stand in tables and groups, leases in sessions, payloads in both: what sessions hold goes
// first, then the namespaces, then the sessions.
Engine::~Engine() {
  services_.begin_event(services_.now());
  sessions_.release();
  services_.effects().long_copies().clear();
  name_spaces_.clear();
}

std::vector<Effect>& Engine::apply(const Event& event, Instant now) {
  services_.begin_event(now);
  sessions_.bury();
  std::visit([this](const auto& one) { on(one); }, event);
  operators_.draining.look();
  freed_pieces_.note(services_.effects().work());
  services_.memory().fit_kept();
  return services_.effects().all();
}

void Engine::on(const Hello& event) {
  if (auto why = operators_.draining.refusal(event)) {
    return sessions_.refuse(event, *std::move(why));
  }
  sessions_.hello(event);
}

void Engine::on(const Advance&) {
  services_.memory().freed.advance(services_.now());
  if (services_.now() < held_until_) return;
  for (int work = 0; work < work_per_advance_max;) {
    Timer* timer = services_.timers().take_due(services_.now());
    if (timer == nullptr) break;
    work += fire(*timer, work_per_advance_max - work);
    if (services_.effects().work() >= steps_per_advance_max) break;
  }
  name_spaces_.sweep();
}

void Engine::on(const Late& event) {
  const Duration gap_max = services_.options().gap_max;
  if (event.length <= gap_max) return;
  held_until_ = services_.now() + services_.options().drain_after_gap;
  if (event.gap <= gap_max) return;
  // All sessions live longer by as much, since their silence is measured without such gaps.
  services_.clock().add_gap(event.gap);
  services_.effects().log(LogLevel::warning, "the server did not run for " + in_seconds(event.gap) +
                                                 "; sessions and timers are extended");
}

void Engine::on(const Continue& event) {
  EffectList& effects = services_.effects();
  effects.limit_work(event.work_max);
  effects.backlog().work(std::max(1, effects.work_left()));
  FreedMemory& freed = services_.memory().freed;
  if (!freed.empty()) give_back(freed, effects);
}

/// A server of many groups tells its operator alone, by the rim: whose group is meant is not known.
void Engine::on(const Stranger& event) {
  if (services_.options().host.rank >= 0) services_.stranger() = event.what;
}

Instant Engine::next_deadline() const {
  const Instant next = services_.timers().next_deadline();
  return next == base::far_future ? next : std::max(next, held_until_);
}

int Engine::fire(Timer& timer, int work_max) {
  services_.effects().spend(1);
  switch (timer.kind()) {
    case TimerKind::session: sessions_.expire(timer.owner<Session>()); break;
    case TimerKind::parked: timer.owner<Parked>().wait->timed_out(); break;
    case TimerKind::key: return 1 + Table::fired(timer, std::min(work_max, work_per_table_max));
    case TimerKind::drain: timer.owner<Draining>().time_is_over(); break;
    case TimerKind::offer: {
      Session& guest = timer.owner<Session>();
      guest.name_space.table.end_offer(guest);
      break;
    }
    case TimerKind::objects:
    case TimerKind::round:
    case TimerKind::member:
    case TimerKind::forming: Groups::fired(timer); break;
  }
  return 1;
}

void Engine::on(const Heard& event) {
  Session* const session = sessions_.connections().session_on(event.connection);
  if (session != nullptr) sessions_.heard(*session);
}

}  // namespace muster::core
