#include "world.h"

#include "body.h"

namespace muster::sim {
namespace {

using namespace std::chrono_literals;

Oracle::Terms terms_of(const Plan& plan) {
  return {plan.options.limits, plan.drift, plan.delay_max, plan.has_small_limits,
          plan.has_expiration()};
}

GuestModel::Terms guest_terms_of(const Plan& plan) {
  return {plan.guests_idle_lifetime, plan.options.limits.grace,
          plan.options.limits.parked_waits_max, plan.has_small_limits};
}

}  // namespace

World::World(std::uint64_t seed, bool is_printed)
    : plan_(seed),
      trace_(is_printed),
      random_(seed),
      network_(scheduler_, random_),
      registry_(plan_.has_identities),
      server_(scheduler_, network_, random_, plan_.options, clock()),
      oracle_(scheduler_, trace_, terms_of(plan_)),
      witness_(oracle_, plan_.options),
      guest_model_(oracle_, trace_, guest_terms_of(plan_)),
      town_{plan_, scheduler_, random_, network_, server_, oracle_, trace_, registry_},
      weather_(town_, {[this] {
                         std::vector<Process*> alive;
                         for (Process& process : processes_) {
                           if (!process.is_over()) alive.push_back(&process);
                         }
                         return alive;
                       },
                       [this](std::uint32_t slot) { spawn(slot); }}) {
  network_.set_delay_max(plan_.delay_max);
  server_.set_witness(witness_);
  server_.set_guest_model(guest_model_);
  server_.grant_of = [this](std::uint64_t client) { return registry_.of(client); };
  scheduler_.set_after_each([this] {
    oracle_.check_deadlines();
    if (server_.is_up()) witness_.check_deadlines();
  });
  server_.heard = [this](std::uint64_t client) { oracle_.heard(client); };
  server_.lets_go = [this](std::uint64_t client) {
    const Instant now = scheduler_.now();
    Life& life = oracle_.life(client);
    life.broken_at = now;
    oracle_.disturbed(client, now, std::max(now, life.held_until()) + 200ms);
  };
  server_.lost_connection = [this](std::uint64_t client) { oracle_.lost_connection(client); };
}

World::~World() = default;

/// Each machine's clock began at some time of its own.
Clock World::clock() {
  const auto most = static_cast<std::int64_t>(plan_.drift * 1e6);
  const auto parts = static_cast<std::uint64_t>(2 * most + 1);
  const auto drift_ppm = static_cast<std::int64_t>(random_.below(parts)) - most;
  return {scheduler_.now(), Instant(random_.between(1s, 24h * 60)), drift_ppm};
}

wire::Role World::role_of(std::uint32_t slot) const {
  if (slot == plan_.ranks) return wire::Role::observer;
  if (slot > plan_.ranks) return wire::Role::supervisor;
  return slot % 4 == 3 ? wire::Role::client : wire::Role::supervisor;
}

Line World::line_of(std::uint32_t slot) const {
  if (slot < plan_.ranks) return slot % 2 == 0 ? Line::worker : Line::other_worker;
  if (slot == plan_.ranks) return Line::observer;
  return slot == plan_.ranks + 1 ? Line::one_stranger : Line::other_stranger;
}

void World::spawn(std::uint32_t slot) {
  const std::uint64_t number = processes_.size() + 1;
  const Identity identity{number, number, "", role_of(slot), slot > plan_.ranks};
  registry_.add(number, line_of(slot));
  const Clock its_clock = clock();
  Process& process = processes_.emplace_back(identity, slot, town_, its_clock);
  if (plan_.is_in_both(slot)) {
    const Identity other{number + 1, number, "b"};
    registry_.add(number + 1, line_of(slot));
    Process& twin = processes_.emplace_back(other, slot, town_, its_clock);
    process.set_twin(twin);
    process.begin();
    return twin.begin();
  }
  process.begin();
}

/// What costs more than a glance; the rest is looked at after each event.
void World::look_again() {
  oracle_.look();
  if (server_.is_up() && !server_.is_stopped()) look_for_members_without_handles();
  scheduler_.after(500ms, [this] { look_again(); });
}

Process* World::process_of(const ProcessInfo& info, std::size_t name_space) {
  for (Process& process : processes_) {
    const Identity& identity = process.identity();
    const bool is_there = identity.name_space.empty() == (name_space == 0);
    if (is_there && !identity.is_stranger && id_of(identity) == info.id) return &process;
  }
  return nullptr;
}

/// A membership without a handle and without a pending call ends within one round trip plus the
/// grace, while nothing keeps its process from the server.
void World::look_for_members_without_handles() {
  const Instant now = scheduler_.now();
  const Duration longest = oracle_.longer(plan_.options.limits.grace) + 4 * plan_.delay_max + 1s;
  std::map<Unheld, Instant> unheld;
  for (std::size_t index = 0; index < plan_.groups.size(); ++index) {
    for (const GroupPlan& group : plan_.groups[index]) {
      const std::string body = server_.report_of_group(index == 0 ? "" : "b", group.name);
      if (body.empty()) continue;
      const auto report = body_of<wire::InspectGroupReply>(body);
      for (const wire::MemberEntry& member : report.members) {
        const bool is_gone = member.state == wire::MemberState::lost ||
                             member.state == wire::MemberState::left || report.epoch == 0;
        Process* const process = is_gone ? nullptr : process_of(member.process, index);
        if (process == nullptr || !process->can_run() || process->may_be_in(group.name)) continue;
        const Unheld one(process->number(), group.name, process->joins_made(group.name));
        const auto known = unheld_.find(one);
        Instant since = known == unheld_.end() ? now : known->second;
        const Life& life = oracle_.life(process->number());
        const bool is_calm = process->client().established() && life.is_calm(since, now) &&
                             !life.was_held(since, now) && oracle_.server_is_calm(since, now);
        if (!is_calm) since = now;
        unheld[one] = since;
        if (now - since <= longest) continue;
        oracle_.problem(life.name + " is a member of epoch " + std::to_string(report.epoch) +
                        " of group " + group.name + ", and has no handle of it");
      }
    }
  }
  unheld_ = std::move(unheld);
}

Outcome World::run() {
  trace_.note(scheduler_.now(), "world", plan_.ranks, [&] { return plan_.text(); });
  for (std::uint32_t slot = 0; slot < plan_.ranks; ++slot) spawn(slot);
  if (plan_.has_observer) spawn(plan_.ranks);
  if (plan_.has_identities) spawn(plan_.ranks + 1);
  if (plan_.has_identities) spawn(plan_.ranks + 2);
  for (std::uint32_t number = 0; number < plan_.guests; ++number) {
    guests_.emplace_back(number, town_, guest_model_).begin();
  }
  weather_.begin();
  look_again();
  pass(plan_.length);
  town_.is_closing = true;
  weather_.end();
  scheduler_.run_until(std::max(scheduler_.now(), weather_.calm_at()));
  // Until all calls have ended, and the sessions of the dead.
  pass(oracle_.longer(24s));
  check_quiet();
  end_all();
  sweep();
  check_nothing_is_left();
  Outcome outcome;
  outcome.problems = oracle_.problems();
  outcome.hash = trace_.hash();
  outcome.passed = scheduler_.now().time_since_epoch() - 1000s;
  outcome.counts = {oracle_.calls_ended_count, oracle_.groups.rounds_done_count,
                    oracle_.groups.epochs_count(), guest_model_.requests_count()};
  return outcome;
}

/// Everybody is well and nobody calls anything: all was answered and acknowledged.
void World::check_quiet() {
  if (scheduler_.is_stopped()) return;
  const core::Counts counts = server_.counts();
  if (counts.waits != 0) oracle_.problem("requests wait although nobody calls anything");
  if (counts.cached_results != 0) oracle_.problem("answers are kept that all were received");
  if (counts.rounds > oracle_.groups.unfinished_rounds_count()) {
    oracle_.problem("the server keeps rounds that are over");
  }
}

void World::end_all() {
  for (Process& process : processes_) {
    if (!process.is_over()) process.close();
  }
  for (int second = 0; second < 120; ++second) {
    bool is_over = true;
    for (const Process& process : processes_) is_over &= process.is_over();
    if (is_over) break;
    pass(1s);
  }
  for (const Process& process : processes_) {
    if (!process.is_over() && !scheduler_.is_stopped()) {
      oracle_.problem(oracle_.life(process.number()).name + " cannot end its work");
    }
  }
  pass(oracle_.longer(plan_.options.limits.session_timeout) + 2s);
}

/// One more client, when all processes are gone.
Identity World::come(std::string name_space, wire::Role role) {
  const std::uint64_t number = processes_.size() + sweepers_.size() + droppers_.size() + 1;
  Identity identity{number, number, std::move(name_space), role};
  Life life;
  life.client = number;
  life.name_space = identity.name_space;
  oracle_.born(std::move(life));
  return identity;
}

/// The last ones read what is there, and remove it, or leave it to somebody who drops it.
void World::sweep() {
  for (std::size_t index = 0; index < plan_.groups.size(); ++index) {
    if (scheduler_.is_stopped()) return;
    const std::string name_space = index == 0 ? "" : "b";
    const auto then = index == 0 ? Sweeper::Then::removes : Sweeper::Then::leaves;
    const Identity identity = come(name_space, wire::Role::client);
    Sweeper& sweeper = sweepers_.emplace_back(identity, town_, clock(), then);
    sweeper.begin();
    pass(20s);
    if (!sweeper.is_done() && !scheduler_.is_stopped()) oracle_.problem("the sweeper is not done");
    pass(2s);
    if (then == Sweeper::Then::leaves) drop(name_space, sweeper.listed_count());
  }
}

void World::drop(const std::string& name_space, std::size_t keys_count) {
  if (scheduler_.is_stopped()) return;
  const Identity identity = come("", wire::Role::supervisor);
  Dropper& dropper = droppers_.emplace_back(identity, town_, clock());
  dropper.begin(name_space, keys_count);
  pass(20s);
  if (!dropper.is_done() && !scheduler_.is_stopped()) oracle_.problem("the dropper is not done");
  pass(2s);
}

void World::check_nothing_is_left() {
  if (scheduler_.is_stopped()) return;
  const core::Counts counts = server_.counts();
  const auto check = [&](const char* what, std::uint64_t count) {
    if (count != 0) {
      oracle_.problem("left on the server: " + std::to_string(count) + " " + what);
    }
  };
  check("sessions", counts.sessions);
  check("connections", counts.connections);
  check("keys", counts.keys);
  check("objects", counts.objects);
  check("groups", counts.groups);
  check("epochs", counts.epochs);
  check("rounds", counts.rounds);
  check("streams", counts.streams);
  check("waits", counts.waits);
  check("cached results", counts.cached_results);
  check("timers", counts.timers);
  check("bytes", counts.memory_bytes);
}

}  // namespace muster::sim
