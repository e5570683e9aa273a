#include "world.h"

#include <algorithm>
#include <string>
#include <utility>

namespace muster::sim::job {
namespace {

using namespace std::chrono_literals;

}  // namespace

World::World(std::uint64_t seed, bool is_printed)
    : story_(seed),
      random_(seed),
      trace_(is_printed),
      board_(scheduler_),
      judge_(story_, scheduler_, trace_),
      land_{story_, scheduler_, random_, trace_, board_, judge_, {}},
      came_again_(story_.slots.size()) {
  board_.changed = [this](const std::string& key, const std::string& value) {
    judge_.board_changed(key, value);
  };
  land_.put = [this](Published what, std::size_t who) {
    const bool is_plan = what.kind == Published::Kind::plan;
    const bool is_verdict = what.kind == Published::Kind::verdict;
    strike_on(is_plan ? Moment::at_plan : is_verdict ? Moment::at_verdict : Moment::at_ending, who);
  };
}

void World::spawn(std::size_t slot) {
  if (board_.is_dead()) return;
  const std::size_t who = launchers_.size();
  Launcher& launcher = launchers_.emplace_back(land_, who, slot);
  launcher.is_gone = [this, slot] {
    if (story_.is_hosted && slot == 0) scheduler_.after(1ms, [this] { lose_board(); });
    const auto& again = story_.slots[slot].comes_again;
    if (!again || came_again_[slot]) return;
    came_again_[slot] = true;
    scheduler_.after(*again, [this, slot] { spawn(slot); });
  };
  trace_.note(scheduler_.now(), "world", who,
              [&] { return "L" + std::to_string(who) + " in place " + std::to_string(slot); });
  launcher.begin();
}

Launcher* World::alive_in(std::size_t slot) {
  for (Launcher& launcher : launchers_)
    if (launcher.slot() == slot && launcher.is_alive()) return &launcher;
  return nullptr;
}

void World::strike_on(Moment moment, std::size_t publisher) {
  const auto found = std::find_if(awaited_.begin(), awaited_.end(),
                                  [&](const StrikePlan& plan) { return plan.moment == moment; });
  if (found == awaited_.end()) return;
  const StrikePlan plan = *found;
  awaited_.erase(found);
  scheduler_.after(plan.after,
                   std::function<void()>([this, plan, publisher] { strike(plan, publisher); }));
}

void World::strike(const StrikePlan& plan, std::size_t publisher) {
  if (land_.is_calm || launchers_.empty()) return;
  trace_.note(scheduler_.now(), "weather", static_cast<std::uint64_t>(plan.what), [&] {
    return "strike " + std::to_string(static_cast<int>(plan.what)) + " at victim " +
           std::to_string(static_cast<int>(plan.victim)) + ", slot " + std::to_string(plan.slot);
  });
  if (plan.what == Strike::board) return lose_board();
  const bool is_single = plan.what < Strike::rank;
  if (!is_single) return strike_all(plan.what);
  Launcher* victim = alive_in(plan.slot);
  if (plan.victim == Victim::publisher) victim = &launchers_[publisher];
  if (plan.victim == Victim::leader && victim != nullptr)
    for (std::size_t who = 0; who < launchers_.size(); ++who)
      if (&launchers_[who] == victim) {
        victim = &launchers_[judge_.leader_of(who)];
        break;
      }
  if (victim != nullptr && victim->is_alive()) strike_at(plan, *victim);
}

void World::strike_at(const StrikePlan& plan, Launcher& victim) {
  switch (plan.what) {
    case Strike::kill: return victim.kill();
    case Strike::kill_host:
      victim.kill_host();
      // Ranks of other nodes fail for that, and may be heard of before.
      if (random_.one_in(2)) strike_all(Strike::rank);
      return;
    case Strike::pause: return victim.pause(plan.lasts);
    case Strike::cut: return victim.cut(plan.lasts);
    case Strike::signals:
      scheduler_.after(random_.between(0s, 3s), [&victim] { victim.signal(15); });
      return victim.signal(2);
    case Strike::signal: return victim.signal(15);
    case Strike::rank:
    case Strike::board:
    case Strike::all:
    case Strike::most: break;
  }
}

void World::strike_all(Strike what) {
  bool is_spared = what == Strike::most;
  for (Launcher& launcher : launchers_) {
    if (!launcher.is_alive() || std::exchange(is_spared, false)) continue;
    if (what == Strike::rank) {
      launcher.ranks().kill_one();
    } else if (random_.one_in(2)) {
      launcher.kill();
    } else {
      launcher.kill_host();
    }
  }
}

void World::lose_board() {
  if (board_.is_dead()) return;
  board_.die();
  judge_.board_dies();
  for (Launcher& launcher : launchers_)
    if (launcher.is_alive())
      scheduler_.after(random_.between(300ms, story_.session_timeout),
                       [&launcher] { launcher.lose_board(); });
}

void World::look() {
  judge_.look();
  scheduler_.after(500ms, [this] { look(); });
}

/// Until all are over, however badly it goes: each attempt costs a restart, a node or a newcomer.
Duration World::longest() const {
  const launch::JobOptions& options = story_.options;
  const auto attempts = static_cast<int>(4 * story_.slots.size()) + options.max_restarts + 2;
  const Duration waiting = options.join_timeout + options.last_call + options.cause_timeout;
  const Duration running = story_.rank_max + options.shutdown_timeout + story_.form_timeout;
  return attempts * (waiting + running + story_.session_timeout + 20s);
}

Outcome World::run() {
  trace_.note(scheduler_.now(), "world", story_.slots.size(), [&] { return story_.text(); });
  const Instant began = scheduler_.now();
  for (std::size_t slot = 0; slot < story_.slots.size(); ++slot)
    if (const auto& comes = story_.slots[slot].comes)
      scheduler_.after(*comes, [this, slot] { spawn(slot); });
  for (const StrikePlan& plan : story_.strikes) {
    if (plan.moment == Moment::at_a_time) {
      scheduler_.after(plan.after, std::function<void()>([this, plan] { strike(plan, 0); }));
    } else {
      awaited_.push_back(plan);
    }
  }
  look();
  scheduler_.run_until(began + story_.length);
  land_.is_calm = true;
  for (Launcher& launcher : launchers_) launcher.ranks().release();
  while (!scheduler_.is_stopped() && scheduler_.now() < began + story_.length + 60s)
    scheduler_.run_until(scheduler_.now() + 5s);
  while (!scheduler_.is_stopped() && !judge_.are_all_over() &&
         scheduler_.now() < began + story_.length + longest())
    scheduler_.run_until(scheduler_.now() + 5s);
  if (!scheduler_.is_stopped() && !judge_.are_all_over())
    judge_.problem(judge_.who_is_not_over() + " never ends");
  Outcome outcome;
  outcome.problems = judge_.problems();
  outcome.hash = trace_.hash();
  outcome.passed = scheduler_.now() - began;
  std::copy(judge_.counts().begin(), judge_.counts().end(), outcome.counts.begin());
  return outcome;
}

}  // namespace muster::sim::job
