#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace muster::sim::job {

/// What stories are to have had, all together: else the weather does not reach what is judged.
enum class Count : std::uint8_t {
  launchers,
  attempts,
  successes,
  failures,
  restarts,
  lost_without_restart,
  lost_with_restart,
  effects_of_loss,
  left,
  grown,
  grown_too_small,
  exit_graces,
  not_started,
  killed_ranks,
  stuck_ranks,
  told_ranks,
  told_twice,
  too_few_came,
  nobody_replaced,
  waited_beside,
  taken_over,
  left_out,
  plans_early,
  over_before_begun,
  not_begun,
  boards_lost,
  sessions_lost,
  reordered,
  leaders_lost_before_plan,
  leaders_lost_after_verdict,
  losers_of_verdict,
  losers_of_ending,
  second_signals,
  second_runs,
  ended_runs_entered,
  runs_entered_anew,
  runs_opened_again,
  runs_awaited,
  lost_while_forming,
  masters_late,
};

inline constexpr std::array count_names{
    "launchers",
    "attempts",
    "jobs that succeeded",
    "jobs that failed",
    "restarts used for a failed rank",
    "lost nodes without a restart",
    "lost nodes replaced with a restart",
    "failed ranks taken for the effect of a loss",
    "nodes told to end",
    "attempts ended for larger ones",
    "attempts ended for larger ones, with too few nodes left then",
    "exit graces passed",
    "ranks that could not be started",
    "ranks killed after their grace",
    "ranks that could not be killed",
    "plans by told node ranks",
    "node ranks told to two",
    "jobs for which too few came",
    "lost nodes that nobody replaced",
    "launchers that waited beside an attempt",
    "attempts all of whose nodes were lost, taken over",
    "launchers left out of the next attempt",
    "plans seen before the last ranks were gone",
    "verdicts seen before the ranks were started",
    "nodes lost since they did not begin",
    "launchers that lost their board",
    "sessions that ended although the launcher lives",
    "cuts that changed an order",
    "leaders lost between a plan and its verdict",
    "leaders lost between a verdict and the next plan",
    "verdicts that came second",
    "endings that came second",
    "second signals",
    "jobs behind one that was killed",
    "launchers that came to a job that had ended",
    "launchers whose run was over when they were in it",
    "runs that somebody entered while the last one left",
    "waits for an earlier run that somebody heard of",
    "nodes lost while the launchers' group formed",
    "addresses of rank 0 seen after the end of the ranks",
};

inline constexpr std::size_t counts_count = count_names.size();
static_assert(counts_count == static_cast<std::size_t>(Count::masters_late) + 1);

}  // namespace muster::sim::job
