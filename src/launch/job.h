#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/job_events.h"
#include "launch/leadership.h"
#include "launch/roster.h"

// What one launcher does for its job, as a state machine: events go in, each with the time at which
// it happened, and effects come out. The launchers of a job meet on a board that all see (the keys
// of a namespace): each is registered there as long as it lives, and what one of them has published
// under a name stays as it is. So whichever of them decides, all follow the same decision.
//
//   joining -> planned: the launcher that came first publishes a plan when enough have come
//   planned -> running -> ending: its ranks run, until a verdict on the attempt is published
//   ending -> joining: the next attempt, or another one without this launcher
//   any -> over: the ending of the job is published, or this launcher cannot go on

namespace muster::launch {

/// threads  one
class Job {
 public:
  Job(JobOptions options, Instant now);

  /// The effects of one event.
  std::vector<Effect> on(const Event& event, Instant now);
  /// When `Advance` is due at the latest.
  Instant next_deadline() const;

 private:
  enum class Phase : std::uint8_t {
    joining,  ///< waits for a plan that it is in
    running,
    ending,  ///< its ranks are being ended
    over,
  };

  void handle(const Registered& event, Instant now);
  void handle(const NodesSeen& event, Instant now);
  void handle(const PlanSeen& event, Instant now);
  void handle(const VerdictSeen& event, Instant now);
  void handle(const EndingSeen& event, Instant now);
  void handle(const SuccessCounted& event, Instant now);
  void handle(const NodesLost& event, Instant now);
  void handle(const BoardLost& event, Instant now);
  void handle(const RankEnded& event, Instant now);
  void handle(const NotStarted& event, Instant now);
  void handle(const RanksGone& event, Instant now);
  void handle(const Signalled& event, Instant now);
  void handle(const Advance& event, Instant now);

  bool is_of_this_attempt(int attempt) const { return plan_ && plan_->attempt == attempt; }
  void await_nodes(Instant now);
  void watch_nodes(Watch watch);
  void decide(Instant now);
  void run(Plan plan);
  void give_verdict(Verdict verdict);
  void end_ranks();
  void finish(int exit_code);
  void say(Importance importance, std::string text);

  const JobOptions options_;
  std::vector<Effect> effects_;
  Phase phase_ = Phase::joining;
  std::optional<std::uint64_t> number_;
  Roster roster_;
  Leadership leadership_;
  Watch watch_ = Watch::off;
  std::optional<Plan> plan_;           ///< that is newest
  std::optional<int> node_rank_;       ///< in that plan; none: it is not in it
  std::optional<Verdict> verdict_;     ///< on that plan's attempt
  std::optional<Plan> waiting_plan_;   ///< to run when the ranks of the last one are gone
  std::optional<Ending> ending_;       ///< of the job, when the ranks are gone
  int running_count_ = 0;              ///< of own ranks
  std::optional<Instant> ended_well_;  ///< when the first of the own ranks had
  int signal_ = 0;                     ///< that ends this launcher
};

}  // namespace muster::launch
