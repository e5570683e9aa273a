#include <algorithm>

#include "judge.h"

// What one launcher does, by what it knows and by what is so.

namespace muster::sim::job {

using launch::Verdict;

namespace {

std::string of_attempt(int attempt) { return "attempt " + std::to_string(attempt); }

}  // namespace

// What it hears.

void Judge::note(Record& record, const launch::PlanSeen& event) {
  const Attempt* const its = attempt_of(record, event.plan.attempt);
  if (its == nullptr || encode(its->plan) != encode(event.plan))
    problem("a plan is seen of another run");
  record.plan = event.plan;
  record.verdict.reset();
  if (record.ranks_of && event.plan.rank_of(record.number)) count(Count::plans_early);
  if (!event.plan.rank_of(record.number)) count(Count::waited_beside);
  if (event.plan.rank_of(record.number) && record.signal != 0) record.owes_departure = true;
}

void Judge::note(Record& record, const launch::VerdictSeen& event) {
  if (!record.plan || record.plan->attempt != event.attempt) return;
  record.verdict = event.verdict;
  const bool is_in = record.plan->rank_of(record.number).has_value();
  if (is_in && record.ranks_of && *record.ranks_of < event.attempt && record.signal == 0)
    count(Count::over_before_begun);
}

void Judge::note(Record& record, const launch::EndingSeen& event) {
  if (!record.ending) record.ending = event.ending.exit_code;
}

void Judge::note(Record& record, const launch::BoardLost&) {
  if (record.lost_board || record.ending) return;
  count(Count::boards_lost);
  record.lost_board = true;
  record.had_succeeded = record.verdict && record.verdict->kind == Verdict::Kind::succeeded;
}

void Judge::note(Record& record, const launch::Signalled& event) {
  if (record.signal != 0) {
    count(Count::second_signals);
    record.signalled_again = scheduler_.now();
  } else {
    record.signal = event.number;
    record.signalled = scheduler_.now();
    record.owes_departure = record.plan && record.plan->rank_of(record.number) && !record.verdict;
  }
  ++record.signals_count;
  stir();
}

void Judge::note(Record& record, const launch::RanksGone&) {
  record.ranks_of.reset();
  record.ends_ranks = false;
}

void Judge::note(Record& record, const launch::Registered&) { record.is_in = true; }

// What it does.

void Judge::does(std::size_t who, const launch::Effect& effect) {
  if (records_[who].is_over) return problem(name_of(who) + " acts after it has finished");
  std::visit([&](const auto& each) { check(who, each); }, effect);
}

void Judge::check(std::size_t who, const launch::StartRanks& effect) {
  Record& record = records_[who];
  const int attempt = effect.plan.attempt;
  const std::string name = name_of(who) + " starts " + of_attempt(attempt);
  const Attempt* const its = attempt_of(record, attempt);
  if (its == nullptr || encode(its->plan) != encode(effect.plan))
    return problem(name + " by a plan that was not published");
  if (effect.plan.rank_of(record.number) != effect.node_rank)
    return problem(name + " as node " + std::to_string(effect.node_rank));
  if (record.ranks_of)
    return problem(name + " while it has ranks of " + of_attempt(*record.ranks_of));
  if (record.signal != 0) return problem(name + " although a signal has told it to end");
  if (record.ending) return problem(name + " although it knows how the job has ended");
  if (record.lost_board) return problem(name + " although its board is gone");
  if (record.plan->attempt != attempt)
    return problem(name + " although it knows of " + of_attempt(record.plan->attempt));
  if (record.verdict) return problem(name + " although it knows the verdict on it");
  int base = 0;
  int world = 0;
  for (std::size_t rank = 0; rank < effect.plan.nodes.size(); ++rank) {
    const Record& other = records_[run_of(record).launchers.at(effect.plan.nodes[rank].number)];
    const int count = story_.slots[other.slot].process_count;
    if (static_cast<int>(rank) < effect.node_rank) base += count;
    world += count;
  }
  if (effect.plan.base_rank_of(effect.node_rank) != base || effect.plan.world_size() != world)
    return problem(name + ", whose ranks are not one behind the other");
  record.ranks_of = attempt;
}

void Judge::check(std::size_t who, const launch::EndRanks& effect) {
  Record& record = records_[who];
  const std::string name = name_of(who) + " ends its ranks";
  if (!record.ranks_of) return problem(name + ", and has none");
  const bool is_second = record.signals_count > 1 && effect.grace == Duration::zero();
  if (effect.grace != options_.shutdown_timeout && !is_second)
    return problem(name + " with another grace than it was given");
  if (effect.were_told != (record.signal != 0))
    return problem(name + (effect.were_told ? " as if they had" : " as if they had not") +
                   " a signal already");
  if (record.ends_ranks && !is_second) return problem(name + " again");
  record.ends_ranks = true;
  if (Attempt* const its = attempt_of(record, *record.ranks_of))
    its->ranks[record.number].was_ended = true;
}

void Judge::check(std::size_t who, const launch::Finish& effect) {
  Record& record = records_[who];
  const std::string name = name_of(who) + " finishes with " + std::to_string(effect.exit_code);
  record.is_over = true;
  if (record.ranks_of) return problem(name + " although its ranks are not gone");
  std::optional<int> expected;
  if (record.signal != 0) {
    expected = 128 + record.signal;
  } else if (record.ending) {
    expected = record.ending;
  } else if (record.lost_board) {
    expected = record.had_succeeded ? 0 : 1;
  }
  if (!expected) return problem(name + " although the job has not ended");
  // So all end alike who know how the job has.
  if (record.signal == 0 && record.ending && run_of(record).ending->exit_code != *expected)
    return problem(name + ", which is not how the job has ended");
  if (*expected != effect.exit_code)
    return problem(name + " in place of " + std::to_string(*expected));
}

void Judge::check(std::size_t who, const launch::CountSuccess& effect) {
  const Record& record = records_[who];
  Attempt* const its = attempt_of(record, effect.attempt);
  const std::string name = name_of(who) + " counts as successful in " + of_attempt(effect.attempt);
  if (its == nullptr || record.ranks_of != effect.attempt) return problem(name + ", not its own");
  if (its->ranks[record.number].ended_well != story_.slots[record.slot].process_count)
    return problem(name + " although not all its ranks have ended well");
}

void Judge::check(std::size_t who, const launch::Unregister&) {
  if (records_[who].signal == 0) problem(name_of(who) + " leaves although nobody told it to");
}

void Judge::check(std::size_t who, const launch::PublishEnding& effect) {
  const Record& record = records_[who];
  if (record.signal != 0) problem(name_of(who) + " ends the job although it was told to leave");
  if (effect.ending.exit_code != 0) return;
  if (!record.verdict || record.verdict->kind != Verdict::Kind::succeeded)
    problem(name_of(who) + " ends the job well and knows of no success");
}

void Judge::check(std::size_t who, const launch::PublishVerdict& effect) {
  Record& record = records_[who];
  record.owes_departure = false;
  const std::string name = name_of(who) + " says of " + of_attempt(effect.attempt) + ", ";
  Attempt* const its = attempt_of(record, effect.attempt);
  if (its == nullptr || !record.plan || record.plan->attempt != effect.attempt)
    return problem(name + "which it does not know, how it has ended");
  if (std::string why = why_wrong(record, *its, effect.verdict); !why.empty()) problem(name + why);
}

std::string Judge::why_wrong(const Record& record, Attempt& attempt, const Verdict& verdict) {
  if (verdict.is_final && verdict.kind != Verdict::Kind::rank_failed) return "that it is final";
  switch (verdict.kind) {
    case Verdict::Kind::succeeded:
      for (const launch::Node& node : attempt.plan.nodes)
        if (attempt.ranks[node.number].ended_well != node.process_count)
          return "that it has succeeded, but ranks of number " + std::to_string(node.number) +
                 " have not";
      return verdict.exit_code == 0 ? "" : "that it has succeeded, with an exit code";
    case Verdict::Kind::rank_failed: return why_not_failed(attempt.ranks[record.number], verdict);
    case Verdict::Kind::nodes_lost:
      // Who has left the attempt since it is over may be heard of before its verdict is.
      return attempt.verdict ? "" : why_not_lost(run_of(record), attempt, verdict);
    case Verdict::Kind::node_left:
      if (verdict.nodes != std::vector<std::uint64_t>{record.number} || record.signal == 0)
        return "that a node was told to end that was not";
      return verdict.exit_code == 128 + record.signal ? "" : "another signal than it was";
    case Verdict::Kind::scaled_up: break;
  }
  if (!options_.scale_up) return "that it is to grow, and nobody asked for that";
  if (static_cast<int>(attempt.plan.nodes.size()) >= options_.nodes_max)
    return "that it is to grow, and it is as large as it may be";
  for (const auto& [number, who] : run_of(record).launchers)
    if (!attempt.plan.rank_of(number)) return "";
  return "that it is to grow, and nobody has come";
}

std::string Judge::why_not_failed(const NodeRanks& ranks, const Verdict& verdict) const {
  const std::string code = std::to_string(verdict.exit_code);
  if (verdict.is_final)
    return ranks.not_started.count(verdict.exit_code) > 0 ? "" : "that ranks cannot start: " + code;
  if (ranks.failures.count(verdict.exit_code) > 0) return "";
  // No rank has failed: some have ended well, and others run for too long, as far as is known.
  const bool has_passed = options_.exit_grace && ranks.first_well &&
                          *ranks.first_well + *options_.exit_grace <= scheduler_.now();
  if (verdict.exit_code == 1 && has_passed) return "";
  return "that a rank has failed with " + code + ", and none has";
}

std::string Judge::why_not_lost(const Run& run, const Attempt& attempt,
                                const Verdict& verdict) const {
  if (verdict.nodes.empty()) return "that nodes are lost, and not which";
  for (const std::uint64_t number : verdict.nodes) {
    const std::string name = "that number " + std::to_string(number) + " is lost, which ";
    if (!attempt.plan.rank_of(number)) return name + "has no part in it";
    const Record& lost = records_[run.launchers.at(number)];
    const bool is_gone =
        !lost.is_there() || lost.lost_session || lost.signal != 0 || run.there.count(number) == 0;
    const bool may_be_late = attempt.at + story_.form_timeout <= scheduler_.now();
    if (!is_gone && !may_be_late && !lost.was_disturbed) return name + "is there";
  }
  return "";
}

}  // namespace muster::sim::job
