#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/job_events.h"
#include "launch/roster.h"

namespace muster::launch {

/// How a job stands, as its leader looks at it.
struct Situation {
  const Plan* plan = nullptr;        ///< that is newest; null: there was none
  const Verdict* verdict = nullptr;  ///< on its attempt; null: it runs
  bool takes_part = false;           ///< in that attempt
};

/// What the launcher decides that leads: the one that came first of those that are there. Two may
/// believe that they lead; then what was published first counts.
class Leadership {
 public:
  explicit Leadership(const JobOptions& options) : options_(options) {}

  /// What is to be published now.
  std::optional<Effect> decide(const Situation& situation, const Roster& roster, Instant now);
  void attempt_begins(Instant now);

 private:
  std::optional<Effect> decide_first(const Roster& roster, Instant now);
  std::optional<Effect> decide_next(const Plan& plan, const Verdict& verdict, const Roster& roster,
                                    Instant now);
  std::optional<Effect> grow(const Situation& situation, const Roster& roster) const;
  std::optional<Effect> plan(int attempt, int restarts_used, std::vector<Node> nodes);
  /// How long the next attempt is still held back: the fourth one that uses no restart, and all
  /// that follow, begin at least 1 s, 2 s, 4 s ... 60 s after the attempt before. Else a node that
  /// is lost and comes back would restart all others without end.
  Duration pause_before_next(const Plan& plan, Instant now) const;
  Effect end(int exit_code, std::string text);

  const JobOptions& options_;
  /// The last one whose plan was published. Nothing else is decided until that is seen.
  int decided_attempt_ = -1;
  bool has_ended_job_ = false;
  bool was_short_of_nodes_ = false;  ///< since the last attempt
  bool has_told_of_pause_ = false;   ///< before the next one
  Instant began_{};                  ///< the last attempt
};

}  // namespace muster::launch
