#include "judge.h"

#include <algorithm>

// What happens, as it is told.

namespace muster::sim::job {

void Judge::problem(const std::string& what) {
  trace_.note(scheduler_.now(), "WRONG", what.size(), [&] { return what; });
  problems_.push_back(what);
  scheduler_.stop();
}

std::string Judge::name_of(std::size_t who) const {
  const Record& record = records_[who];
  return "launcher " + std::to_string(who) + " (place " + std::to_string(record.slot) +
         ", number " + std::to_string(record.number) + ")";
}

void Judge::comes(std::size_t who, std::size_t slot) {
  count(Count::launchers);
  Record& record = records_.emplace_back();
  record.slot = slot;
  record.came = scheduler_.now();
  if (records_.size() != who + 1) problem("launchers are not numbered one by one");
  stir();
}

void Judge::registers(std::size_t who, const std::string& run_name, const launch::Node& node) {
  Record& record = records_[who];
  if (runs_.count(run_name) == 0 && !runs_.empty()) count(Count::second_runs);
  Run& run = runs_[run_name];
  run.name = run_name;
  if (run.ending) count(Count::ended_runs_entered);
  const bool is_alone = !run.launchers.empty() && run.there.empty();
  if (is_alone && is_calm(record) && run.changed + slack() < scheduler_.now())
    problem(name_of(who) + " enters the run " + run_name + ", of which nobody is left");
  const auto was_dead = [&](std::uint64_t number) {
    return records_[run.launchers.at(number)].died < record.came;
  };
  if (!run.there.empty() && run.changed < record.came &&
      std::all_of(run.there.begin(), run.there.end(), was_dead))
    problem(name_of(who) + " enters the run " + run_name + ", whose launchers were dead before");
  record.run = run_name;
  record.number = node.number;
  record.registered = scheduler_.now();
  run.launchers[node.number] = who;
}

void Judge::board_changed(const std::string& key, const std::string& value) {
  constexpr std::string_view part = "/node/";
  const auto found = key.find(part);
  if (found == key.npos) return;
  const std::string run_name = key.substr(4, found - 4);
  const auto place = runs_.find(run_name);
  if (place == runs_.end()) return;
  Run& run = place->second;
  const std::uint64_t number = std::stoull(key.substr(found + part.size()));
  const std::uint64_t first = run.there.empty() ? 0 : *run.there.begin();
  if (value.empty()) {
    run.there.erase(number);
  } else {
    run.there.insert(number);
  }
  if (!run.there.empty() && *run.there.begin() != first) run.led_since = scheduler_.now();
  run.changed = scheduler_.now();
  look_at_left(run);
  stir();
}

/// Keeps what was so since the verdict on the last attempt.
void Judge::look_at_left(Run& run) {
  if (run.attempts.empty() || !run.attempts.back().verdict) return;
  Attempt& last = run.attempts.back();
  const auto& lost = last.verdict->nodes;
  std::size_t left = 0;
  for (const std::uint64_t number : run.there)
    if (std::find(lost.begin(), lost.end(), number) == lost.end()) ++left;
  last.fewest_left = std::min(last.fewest_left, left);
  const bool is_short = left < static_cast<std::size_t>(options_.nodes_min);
  if (!is_short && last.short_since) last.last_short = {*last.short_since, scheduler_.now()};
  if (!is_short) last.short_since.reset();
  if (is_short && !last.short_since) last.short_since = scheduler_.now();
  for (const launch::Node& node : last.plan.nodes)
    if (run.there.count(node.number) == 0 && !last.misses_one_since)
      last.misses_one_since = scheduler_.now();
  std::erase_if(last.stayed, [&](std::uint64_t number) { return run.there.count(number) == 0; });
}

void Judge::disturbed(std::size_t who, Duration lasts) {
  Record& record = records_[who];
  record.was_disturbed = true;
  record.disturbed_until = std::max(record.disturbed_until, scheduler_.now() + lasts);
  stir();
}

void Judge::session_ends(std::size_t who) {
  if (records_[who].is_there()) count(Count::sessions_lost);
  records_[who].lost_session = true;
  stir();
}

void Judge::loses_run(std::size_t who) { records_[who].lost_session = true; }

void Judge::dies(std::size_t who) {
  Record& record = records_[who];
  if (!record.run.empty() && record.is_there() && leader_of(who) == who) {
    const Run& run = run_of(record);
    const bool has_plan = !run.attempts.empty() && !run.ending;
    if (has_plan && !run.attempts.back().verdict) count(Count::leaders_lost_before_plan);
    if (has_plan && run.attempts.back().verdict) count(Count::leaders_lost_after_verdict);
  }
  record.is_dead = true;
  record.died = scheduler_.now();
  if (record.ranks_of)
    if (Attempt* const its = attempt_of(record, *record.ranks_of))
      its->ranks[record.number].was_ended = true;
  stir();
}

void Judge::leaves(std::size_t who) {
  records_[who].has_left = true;
  stir();
}

void Judge::board_dies() {
  board_died_ = scheduler_.now();
  stir();
}

std::size_t Judge::leader_of(std::size_t who) const {
  const auto run = runs_.find(records_[who].run);
  if (run == runs_.end() || run->second.there.empty()) return who;
  const auto leader = run->second.launchers.find(*run->second.there.begin());
  return leader == run->second.launchers.end() ? who : leader->second;
}

bool Judge::has_leader(const Run& run) const {
  if (run.there.empty()) return false;
  const Record& first = records_[run.launchers.at(*run.there.begin())];
  return first.is_in && first.is_there() && !first.lost_session;
}

Judge::Attempt* Judge::attempt_of(const Record& record, int attempt) {
  if (record.run.empty()) return nullptr;
  Run& run = run_of(record);
  if (attempt < 0 || attempt >= static_cast<int>(run.attempts.size())) return nullptr;
  return &run.attempts[static_cast<std::size_t>(attempt)];
}

void Judge::hears(std::size_t who, const launch::Event& event) {
  Record& record = records_[who];
  if (record.is_over) return;
  std::visit([&](const auto& each) { note(record, each); }, event);
}

void Judge::rank_starts(std::size_t who, int attempt, int local_rank) {
  Record& record = records_[who];
  for (const auto& [other, local] : record.running) {
    if (other == attempt && local != local_rank) continue;
    return problem(name_of(who) + ": local rank " + std::to_string(local_rank) + " of attempt " +
                   std::to_string(attempt) + " starts while local rank " + std::to_string(local) +
                   " of attempt " + std::to_string(other) + " runs");
  }
  record.running.emplace(attempt, local_rank);
  Attempt* const its = attempt_of(record, attempt);
  if (its == nullptr)
    return problem(name_of(who) + ": a rank starts of attempt " + std::to_string(attempt) +
                   ", which has no plan");
  its->ranks[record.number].was_started = true;
  // Rank 0's node had its ranks of before gone when it told its address.
  const Record& first = records_[run_of(record).launchers.at(its->plan.nodes.front().number)];
  for (const auto& [other, local] : first.running) {
    if (other >= attempt) continue;
    problem(name_of(who) + ": a rank of attempt " + std::to_string(attempt) +
            " starts while one of attempt " + std::to_string(other) + " runs on node 0");
  }
}

void Judge::rank_ends(std::size_t who, int attempt, int local_rank, int exit_code) {
  Record& record = records_[who];
  record.running.erase({attempt, local_rank});
  Attempt* const its = attempt_of(record, attempt);
  if (its == nullptr) return;
  NodeRanks& ranks = its->ranks[record.number];
  if (ranks.was_ended) return;
  if (exit_code == 0) {
    ++ranks.ended_well;
    ranks.last_well = scheduler_.now();
    if (!ranks.first_well) ranks.first_well = scheduler_.now();
  } else {
    ranks.failures.insert(exit_code);
    if (!ranks.first_failure) ranks.first_failure = scheduler_.now();
  }
}

void Judge::rank_is_stuck(std::size_t who, int attempt, int local_rank) {
  count(Count::stuck_ranks);
  records_[who].running.erase({attempt, local_rank});
}

void Judge::rank_not_started(std::size_t who, int attempt, int exit_code) {
  count(Count::not_started);
  Record& record = records_[who];
  if (Attempt* const its = attempt_of(record, attempt)) {
    NodeRanks& ranks = its->ranks[record.number];
    ranks.not_started.insert(exit_code);
    if (!ranks.first_failure) ranks.first_failure = scheduler_.now();
  }
}

bool Judge::are_all_over() const {
  return std::all_of(records_.begin(), records_.end(),
                     [](const Record& record) { return record.is_dead || record.has_left; });
}

std::string Judge::who_is_not_over() const {
  for (std::size_t who = 0; who < records_.size(); ++who)
    if (!records_[who].is_dead && !records_[who].has_left) return name_of(who);
  return "nobody";
}

}  // namespace muster::sim::job
