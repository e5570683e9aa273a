#include "core/engine.h"

#include <algorithm>

#include "core/engine_impl.h"

// An event's life: time is observed (did the process sleep?) -> the session that it comes from is
// marked as heard -> the rooms (table, groups) handle it and hand answers back through Host ->
// they leave as effects, in the order in which they were made.
//
// Timers fire in Advance only. So what a client sent before a deadline and what was read after it
// is handled first; and after a sleep of the whole process the rim drains its sockets before
// anybody is declared dead or late.

namespace muster::core {
namespace {

constexpr int work_per_advance_max = 128;  ///< timers that fire, keys that expire
constexpr int work_per_table_max = 64;     ///< keys of one table, then others have their turn

}  // namespace

Engine::Engine(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Engine::~Engine() = default;

std::vector<Effect>& Engine::apply(const Event& event, Instant now) {
  return impl_->apply(event, now);
}
Instant Engine::next_deadline() const { return impl_->next_deadline(); }
Counts Engine::counts() const { return impl_->counts(); }
Quota& Engine::quota() { return impl_->quota(); }
const Options& Engine::options() const { return impl_->options(); }

Engine::Impl::Impl(Options options)
    : options_(std::move(options)),
      quota_(options_.memory_bytes_max),
      processes_(0, ProcessHash{options_.hash_key}) {}

// Waits stand in tables and groups, leases in sessions, payloads in both: what sessions hold goes
// first, then the namespaces, then the sessions.
Engine::Impl::~Impl() {
  effects_.clear();
  ended_.clear();
  brought_.reset();
  for (auto& [id, session] : sessions_) {
    session->parked.clear();
    session->unacknowledged.drain([](auto) {});
  }
  name_spaces_.clear();
}

std::vector<Effect>& Engine::Impl::apply(const Event& event, Instant now) {
  effects_.clear();
  ended_.clear();
  brought_in_ = nullptr;
  brought_.reset();
  observe(now);
  std::visit([this](const auto& one) { on(one); }, event);
  return effects_;
}

void Engine::Impl::observe(Instant now) {
  if (!started_) {
    started_ = true;
    start_ = now_ = std::max(now, now_);
    return;
  }
  const Instant before = now_;
  now_ = std::max(now, now_);
  const Duration gap = now_ - before;
  if (gap <= options_.gap_max) return;
  // All sessions live longer by as much, since their silence is measured without such gaps.
  paused_sum_ += gap;
  held_until_ = now_ + options_.drain_after_gap;
  log(LogLevel::warning,
      "the server did not run for " + in_seconds(gap) + "; sessions and timers are extended");
}

void Engine::Impl::on(const Advance&) {
  if (now_ < held_until_) return;
  for (int work = 0; work < work_per_advance_max;) {
    Timer* timer = timers_.take_due(now_);
    if (timer == nullptr) break;
    work += fire(*timer, work_per_advance_max - work);
  }
  delete_one_unused();
}

Instant Engine::Impl::next_deadline() const {
  const Instant next = timers_.next_deadline();
  return next == base::far_future ? next : std::max(next, held_until_);
}

int Engine::Impl::fire(Timer& timer, int work_max) {
  switch (timer.kind()) {
    case TimerKind::session: fire_expiry(timer.owner<Session>()); break;
    case TimerKind::parked: timer.owner<Parked>().wait->timed_out(); break;
    case TimerKind::key: return 1 + Table::fired(timer, std::min(work_max, work_per_table_max));
    case TimerKind::objects:
    case TimerKind::round: Groups::fired(timer); break;
  }
  return 1;
}

NameSpace* Engine::Impl::name_space_for(const std::string& name) {
  const auto found = name_spaces_.find(name);
  if (found != name_spaces_.end()) return found->second.get();
  if (name_spaces_.size() >= options_.name_spaces_max) return nullptr;
  auto made = std::make_unique<NameSpace>(name, *this, quota_);
  return name_spaces_.emplace(name, std::move(made)).first->second.get();
}

void Engine::Impl::watch_if_unused(NameSpace& name_space) {
  if (name_space.sessions != 0 || name_space.watched) return;
  watched_.push_back(&name_space);
  name_space.watched = true;
}

/// Looks at one namespace that has lost its last session: are its keys gone by now, and the
/// replies that were on their way?
void Engine::Impl::delete_one_unused() {
  if (watched_.empty()) return;
  NameSpace& name_space = *watched_.front();
  watched_.pop_front();
  if (name_space.sessions != 0) {
    name_space.watched = false;
    return;
  }
  Counts counts;
  name_space.table.add_counts(counts);
  name_space.groups.add_counts(counts);
  if (counts.keys + counts.groups == 0 && name_space.quota.used_bytes() == 0) {
    name_spaces_.erase(name_spaces_.find(name_space.name));
    return;
  }
  watched_.push_back(&name_space);
}

Counts Engine::Impl::counts() const {
  Counts counts;
  counts.sessions = sessions_.size();
  counts.observers = observers_count_;
  counts.connections = connections_.size();
  counts.waits = parked_count_;
  counts.cached_results = cached_count_;
  counts.timers = timers_.armed_count();
  for (const auto& [name, name_space] : name_spaces_) {
    name_space->table.add_counts(counts);
    name_space->groups.add_counts(counts);
  }
  counts.memory_bytes = quota_.used_bytes();
  return counts;
}

void Engine::Impl::send_event(Session& session, wire::EventKind kind,
                              std::shared_ptr<const std::string> body) {
  if (session.connection == 0) return;
  effects_.emplace_back(SendEvent{session.connection, kind, std::move(body)});
}

void Engine::Impl::log(LogLevel level, std::string line) {
  effects_.emplace_back(Log{level, std::move(line)});
}

}  // namespace muster::core
