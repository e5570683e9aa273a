#include <algorithm>

#include "judge.h"

// What is on the board, and counts for all.

namespace muster::sim::job {

using launch::Ending;
using launch::Node;
using launch::Plan;
using launch::Verdict;

namespace {

std::uint64_t number_of(const Node& node) { return node.number; }

std::string in_text(Duration duration) {
  return std::to_string(static_cast<double>(duration.count()) / 1e6) + " s";
}

}  // namespace

void Judge::published(std::size_t who, const std::string& run_name, Published what,
                      const std::string& bytes, bool is_first) {
  Run& run = runs_.at(run_name);
  if (what.kind == Published::Kind::plan) {
    const auto plan = launch::decode_plan(bytes);
    if (!plan || plan->attempt != what.attempt) return problem("a plan that nobody can read");
    if (is_first) plan_counts(who, run, *plan);
  } else if (what.kind == Published::Kind::verdict) {
    auto verdict = launch::decode_verdict(bytes);
    if (!verdict) return problem("a verdict that nobody can read");
    is_first ? verdict_counts(who, run, what.attempt, *std::move(verdict))
             : count(Count::losers_of_verdict);
  } else {
    const auto ending = launch::decode_ending(bytes);
    if (!ending) return problem("an ending that nobody can read");
    is_first ? ending_counts(who, run, *ending) : count(Count::losers_of_ending);
  }
}

void Judge::plan_counts(std::size_t who, Run& run, const Plan& plan) {
  const std::string name =
      name_of(who) + ", plan of attempt " + std::to_string(plan.attempt) + ": ";
  count(Count::attempts);
  if (plan.attempt != static_cast<int>(run.attempts.size()))
    return problem(name + "the one before it has none");
  check_nodes(run, plan, name);
  if (plan.attempt == 0) {
    check_begin(who, run, plan);
  } else {
    check_next(who, run, run.attempts.back(), plan);
    check_restarts(who, run, plan, name);
  }
  Attempt& attempt = run.attempts.emplace_back();
  attempt.plan = plan;
  attempt.at = scheduler_.now();
  attempt.by = who;
}

/// Who takes part, and in which order.
void Judge::check_nodes(const Run& run, const Plan& plan, const std::string& name) {
  const auto size = static_cast<int>(plan.nodes.size());
  if (size < options_.nodes_min || size > options_.nodes_max)
    return problem(name + std::to_string(size) + " nodes");
  bool are_told = true;
  for (const Node& node : plan.nodes) {
    const auto launcher = run.launchers.find(node.number);
    if (launcher == run.launchers.end())
      return problem(name + "number " + std::to_string(node.number) + " is nobody");
    const Slot& slot = story_.slots[records_[launcher->second].slot];
    if (node.process_count != slot.process_count || node.wanted_rank != slot.wanted_rank)
      return problem(name + "number " + std::to_string(node.number) + " is another node");
    are_told = are_told && node.wanted_rank.has_value();
  }
  // In this order, and no two of the same: so the same nodes have the same ranks.
  const auto is_misplaced = [&](const Node& a, const Node& b) {
    return are_told ? *a.wanted_rank >= *b.wanted_rank : number_of(a) >= number_of(b);
  };
  if (std::adjacent_find(plan.nodes.begin(), plan.nodes.end(), is_misplaced) != plan.nodes.end())
    problem(name + "nodes are not in the order of their ranks");
  if (are_told) count(Count::told_ranks);
}

void Judge::check_begin(std::size_t who, const Run& run, const Plan& plan) {
  const std::string name = name_of(who) + ", first plan: ";
  if (plan.restarts_used != 0) return problem(name + "restarts are used");
  const bool is_full = static_cast<int>(plan.nodes.size()) == options_.nodes_max;
  Instant last{};
  for (const Node& node : plan.nodes)
    last = std::max(last, records_[run.launchers.at(node.number)].registered);
  const Duration since = scheduler_.now() - last;
  if (!is_full && since < options_.last_call)
    problem(name + "a node has come " + in_text(since) + " ago, which is within the last call");
}

void Judge::check_next(std::size_t who, const Run& run, const Attempt& last, const Plan& plan) {
  const std::string name = name_of(who) + ", next plan: ";
  if (!last.verdict) return problem(name + "the attempt before it goes on");
  const Verdict& verdict = *last.verdict;
  if (verdict.kind == Verdict::Kind::succeeded || verdict.is_final)
    return problem(name + "the attempt before it was the last");
  for (const std::uint64_t number : verdict.nodes)
    if (plan.rank_of(number))
      return problem(name + "number " + std::to_string(number) + " is lost, and in it");
  const bool may_be_effect =
      verdict.kind == Verdict::Kind::rank_failed && last.plan.nodes.size() > 1;
  if (may_be_effect && scheduler_.now() < last.verdict_at + options_.cause_timeout)
    return problem(name + "it was not awaited whether a node is lost");
  if (static_cast<int>(plan.nodes.size()) == options_.nodes_max) return;
  for (const std::uint64_t number : last.stayed)
    if (!plan.rank_of(number) && is_calm(records_[who]))
      return problem(name + "number " + std::to_string(number) + " is there, and not in it");
  if (run.there.size() > plan.nodes.size()) count(Count::left_out);
}

/// For so long that who leads knows, who has led all the time.
bool Judge::was_short_for_long(std::size_t who, const Run& run, const Attempt& last) const {
  if (!last.last_short) return false;
  const Record& leader = records_[who];
  const Instant since = std::max(last.last_short->since, last.verdict_at + options_.cause_timeout);
  // The leader waits for a loss from the time when it sees the verdict.
  const bool is_informed = leader.disturbed_until < last.verdict_at && !leader.lost_session;
  const bool has_led = run.led_since < since && *run.there.begin() == leader.number;
  return is_informed && has_led && since + slack() < last.last_short->until;
}

void Judge::check_restarts(std::size_t who, const Run& run, const Plan& plan,
                           const std::string& name) {
  const Attempt& last = run.attempts.back();
  const int used = plan.restarts_used - last.plan.restarts_used;
  const auto nodes_min = static_cast<std::size_t>(options_.nodes_min);
  if (plan.restarts_used > options_.max_restarts)
    return problem(name + "more restarts than there are");
  if (used < 0 || used > 1) return problem(name + std::to_string(used) + " restarts at once");
  const Verdict& verdict = *last.verdict;
  const bool has_failed = verdict.kind == Verdict::Kind::rank_failed;
  const bool was_short = last.fewest_left < nodes_min;
  // A leader that was stopped may count by a list of nodes that is older than the verdict.
  if (used == 1 && !has_failed && !was_short && records_[who].disturbed_until < last.verdict_at)
    return problem(name + "a restart is used although no rank has failed and enough were left");
  if (used == 0 && has_failed && !last.misses_one_since)
    return problem(name + "no restart is used although a rank has failed and no node is lost");
  // One node alone does not fail for another's loss.
  const bool is_effect = last.misses_one_since && last.plan.nodes.size() > 1 &&
                         is_calm(records_[who]) &&
                         *last.misses_one_since + slack() < scheduler_.now();
  if (used == 1 && has_failed && is_effect && !was_short)
    return problem(name + "a restart is used for the effect of a loss");
  if (used == 0 && was_short_for_long(who, run, last))
    return problem(name + "no restart is used although too few nodes were left");
  if (used == 1 && has_failed) count(Count::restarts);
  if (used == 0 && has_failed) count(Count::effects_of_loss);
  if (used == 0 && verdict.kind == Verdict::Kind::nodes_lost) count(Count::lost_without_restart);
  if (used == 1 && verdict.kind == Verdict::Kind::nodes_lost) count(Count::lost_with_restart);
}

void Judge::verdict_counts(std::size_t who, Run& run, int attempt, Verdict verdict) {
  if (attempt + 1 != static_cast<int>(run.attempts.size()))
    return problem(name_of(who) + ": the first verdict on attempt " + std::to_string(attempt) +
                   " comes after the next plan");
  Attempt& its = run.attempts.back();
  const bool is_outside = !its.plan.rank_of(records_[who].number).has_value();
  if (verdict.kind == Verdict::Kind::nodes_lost && is_outside) count(Count::taken_over);
  if (verdict.kind == Verdict::Kind::nodes_lost && !verdict.text.ends_with("dead"))
    if (verdict.text.ends_with("begun the attempt")) count(Count::not_begun);
  if (verdict.kind == Verdict::Kind::node_left) count(Count::left);
  if (verdict.kind == Verdict::Kind::scaled_up) count(Count::grown);
  if (verdict.text.find("--exit-grace") != verdict.text.npos) count(Count::exit_graces);
  its.verdict = std::move(verdict);
  its.verdict_at = scheduler_.now();
  its.fewest_left = run.there.size();
  its.stayed = run.there;
  for (const std::uint64_t number : its.verdict->nodes) its.stayed.erase(number);
  look_at_left(run);
}

void Judge::ending_counts(std::size_t who, Run& run, const Ending& ending) {
  count(ending.exit_code == 0 ? Count::successes : Count::failures);
  const std::string why = why_not_over(who, run, ending);
  if (!why.empty())
    problem(name_of(who) + " ends the job with " + std::to_string(ending.exit_code) + ": " + why);
  if (ending.exit_code == 2) count(Count::told_twice);
  if (run.attempts.empty() && ending.exit_code == 1) count(Count::too_few_came);
  const bool has_verdict = !run.attempts.empty() && run.attempts.back().verdict;
  if (has_verdict && ending.exit_code == 1 &&
      run.attempts.back().verdict->kind == Verdict::Kind::scaled_up)
    count(Count::grown_too_small);
  if (ending.text.find("no others have come") != ending.text.npos) count(Count::nobody_replaced);
  run.ending = ending;
  run.ended = scheduler_.now();
}

std::string Judge::why_not_over(std::size_t who, const Run& run, const Ending& ending) const {
  const Instant now = scheduler_.now();
  const auto nodes_min = static_cast<std::size_t>(options_.nodes_min);
  if (ending.exit_code == 2) {  // told ranks that are the same
    std::set<int> told;
    for (const auto& [number, launcher] : run.launchers) {
      const auto& wanted = story_.slots[records_[launcher].slot].wanted_rank;
      if (wanted && !told.insert(*wanted).second) return "";
    }
    if (run.attempts.empty()) return "all node ranks differ";
  }
  if (run.attempts.empty()) {
    if (ending.exit_code != 1) return "nothing has run";
    if (now < records_[who].registered + options_.join_timeout) return "nodes may still come";
    const bool has_old_view = !is_calm(records_[who]) || now < run.changed + slack();
    return run.there.size() < nodes_min || has_old_view ? "" : "enough nodes have come";
  }
  const Attempt& last = run.attempts.back();
  if (!last.verdict) return "the attempt goes on";
  const Verdict& verdict = *last.verdict;
  const bool has_succeeded = verdict.kind == Verdict::Kind::succeeded;
  if (has_succeeded != (ending.exit_code == 0)) return "the last attempt has ended otherwise";
  const int expected = has_succeeded || verdict.exit_code != 0 ? verdict.exit_code : 1;
  if (ending.exit_code != expected) return "that is not the exit code of the failure";
  if (has_succeeded || verdict.is_final) return "";
  const bool has_restart = last.plan.restarts_used < options_.max_restarts;
  const bool has_failed = verdict.kind == Verdict::Kind::rank_failed;
  const bool may_be_effect = has_failed && last.plan.nodes.size() > 1;
  if (may_be_effect && now < last.verdict_at + options_.cause_timeout)
    return "it was not awaited whether a node is lost";
  const bool was_short = last.fewest_left < nodes_min;
  if (!has_restart) {
    if (has_failed && !last.misses_one_since) return "";
    return was_short || has_failed ? "" : "no rank has failed, and enough nodes are left";
  }
  if (!was_short) return "a restart is left, and enough nodes are";
  return now < last.verdict_at + options_.join_timeout ? "nodes may still come" : "";
}

}  // namespace muster::sim::job
