#include <algorithm>

#include "judge.h"

// What is due. Each bound counts from when nothing has happened from outside any more, as far as
// that is later than its cause.

namespace muster::sim::job {

using launch::Verdict;
using namespace std::chrono_literals;

namespace {

/// Until a process is named that cannot be killed.
constexpr Duration killing = 5s;

}  // namespace

void Judge::due(Instant since, Duration within, const std::string& what) {
  if (scheduler_.now() > std::max(since, stirred_) + within) problem(what);
}

void Judge::look() {
  for (std::size_t who = 0; who < records_.size(); ++who) {
    const Record& record = records_[who];
    // Who is held up stirs again when that ends.
    if (record.disturbed_until > stirred_ && record.disturbed_until <= scheduler_.now())
      stirred_ = record.disturbed_until;
    if (record.disturbed_until > scheduler_.now()) stir();
    if (record.is_there()) look_at_launcher(who, record);
  }
  if (board_died_) return;
  for (auto& [name, run] : runs_)
    if (!run.ending && has_leader(run)) look_at(run);
}

void Judge::look_at(Run& run) {
  const Duration patience = std::max(options_.join_timeout, options_.last_call) + slack();
  if (run.attempts.empty())
    return due({}, patience, "run " + run.name + ": nobody decides how the job begins");
  const Attempt& last = run.attempts.back();
  const std::string name = "run " + run.name + ", attempt " + std::to_string(last.plan.attempt);
  if (!last.verdict) return look_at_running(run, last);
  if (last.verdict->kind == Verdict::Kind::succeeded)
    return due(last.verdict_at, slack(), name + " has succeeded, and the job does not end");
  const bool is_short = last.fewest_left < static_cast<std::size_t>(options_.nodes_min);
  const Duration wait = is_short ? patience + options_.cause_timeout
                                 : std::min(patience, options_.cause_timeout + 1s + slack());
  due(last.verdict_at, wait, name + " is over, and nobody decides what is next");
}

void Judge::look_at_running(const Run& run, const Attempt& attempt) {
  const std::string name = "run " + run.name + ", attempt " + std::to_string(attempt.plan.attempt);
  const Duration ending = options_.shutdown_timeout + killing + slack();
  bool have_all_ended_well = true;
  Instant last_well = attempt.at;
  bool takes_part = false;
  for (const launch::Node& node : attempt.plan.nodes) {
    const auto found = attempt.ranks.find(node.number);
    const NodeRanks ranks = found == attempt.ranks.end() ? NodeRanks() : found->second;
    const Record& record = records_[run.launchers.at(node.number)];
    have_all_ended_well = have_all_ended_well && ranks.ended_well == node.process_count &&
                          record.is_there() && !record.lost_session;
    last_well = std::max(last_well, ranks.last_well);
    if (run.there.count(node.number) == 0) {
      due(std::max(attempt.at, run.changed), 2s + ending,
          name + ": nobody says that a node is gone");
      continue;
    }
    takes_part = true;
    if (!record.is_there()) continue;  // that is not known yet
    if (ranks.first_failure)
      due(*ranks.first_failure, slack(), name + ": nobody says that a rank has failed");
    if (options_.exit_grace && ranks.first_well && ranks.ended_well < node.process_count)
      due(*ranks.first_well, *options_.exit_grace + slack(),
          name + ": nobody says that the exit grace has passed");
  }
  if (have_all_ended_well)
    due(last_well, slack(), name + ": all ranks have ended well, and nobody says so");
  if (!takes_part)
    due(attempt.at, slack(), name + ": none of its nodes is left, and nobody takes over");
  const bool has_room = static_cast<int>(attempt.plan.nodes.size()) < options_.nodes_max;
  const bool leads = attempt.plan.rank_of(*run.there.begin()).has_value();
  if (options_.scale_up && has_room && leads && run.there.size() > attempt.plan.nodes.size())
    due(attempt.at, ending + 1s, name + " does not grow");
}

void Judge::look_at_launcher(std::size_t who, const Record& record) {
  const std::string name = name_of(who);
  const Duration ending = options_.shutdown_timeout + killing + slack();
  if (record.owes_departure) problem(name + " was told to end and does not say so");
  if (board_died_ && record.signal == 0)
    due(*board_died_, 2 * story_.session_timeout + ending,
        name + " goes on although the board is gone");
  if (record.signal != 0) due(record.signalled, ending, name + " does not obey a signal");
  if (record.signalled_again)
    due(*record.signalled_again, killing + slack(), name + " does not obey a second signal");
  if (board_died_ || record.lost_session || record.signal != 0) return;
  // The name of a run that is over is gone that much later; who leaves it keeps it until then.
  if (!record.is_in) return due(record.came, run_lifetime + ending, name + " finds no job");
  const Run& run = run_of(record);
  if (run.ending) due(run.ended, ending + 1s, name + " goes on although the job is over");
  if (run.attempts.empty()) return;
  const Attempt& last = run.attempts.back();
  const bool has_old = record.ranks_of && *record.ranks_of < last.plan.attempt;
  if (has_old) due(last.at, ending, name + " has ranks of an attempt that is over");
  if (record.ranks_of && last.verdict)
    due(last.verdict_at, ending, name + " has ranks of the last attempt, which is over");
  const bool is_member = last.plan.rank_of(record.number).has_value();
  const auto ranks = last.ranks.find(record.number);
  const bool has_ended = ranks != last.ranks.end() && ranks->second.was_ended;
  if (is_member && !last.verdict && !record.ranks_of && !has_ended)
    due(last.at, ending, name + " does not start its ranks");
}

}  // namespace muster::sim::job
