#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "../scheduler.h"
#include "../trace.h"
#include "counts.h"
#include "launch/job_events.h"
#include "story.h"

namespace muster::sim::job {

/// What a launcher puts on the board, where what comes first counts.
struct Published {
  enum class Kind : std::uint8_t { plan, verdict, ending };
  Kind kind = Kind::plan;
  int attempt = 0;
};

/// Knows all that happens, and says what is not as docs/musterrun.md and the headers promise.
/// Launchers are numbered in the order in which they begin.
class Judge {
 public:
  Judge(const Story& story, Scheduler& scheduler, Trace& trace)
      : story_(story), options_(story.options), scheduler_(scheduler), trace_(trace) {}

  // What happens to launchers.
  void comes(std::size_t who, std::size_t slot);
  void registers(std::size_t who, const std::string& run, const launch::Node& node);
  void disturbed(std::size_t who, Duration lasts);
  void session_ends(std::size_t who);
  void loses_run(std::size_t who);
  void dies(std::size_t who);
  void leaves(std::size_t who);
  void hears(std::size_t who, const launch::Event& event);
  void board_dies();

  // What launchers do.
  void does(std::size_t who, const launch::Effect& effect);
  void published(std::size_t who, const std::string& run, Published what, const std::string& bytes,
                 bool is_first);
  void board_changed(const std::string& key, const std::string& value);
  void rank_starts(std::size_t who, int attempt, int local_rank);
  void rank_ends(std::size_t who, int attempt, int local_rank, int exit_code);
  /// A process of it goes on, and nobody waits for it.
  void rank_is_stuck(std::size_t who, int attempt, int local_rank);
  void rank_not_started(std::size_t who, int attempt, int exit_code);

  /// What should have happened by now.
  void look();
  void problem(const std::string& what);
  void count(Count what) { ++counts_[static_cast<std::size_t>(what)]; }

  const std::vector<std::string>& problems() const { return problems_; }
  const std::array<std::uint64_t, counts_count>& counts() const { return counts_; }
  bool are_all_over() const;
  std::string who_is_not_over() const;
  /// Who decides in the run of that launcher; itself, if nobody does.
  std::size_t leader_of(std::size_t who) const;

 private:
  struct Record {
    std::size_t slot = 0;
    std::string run;
    std::uint64_t number = 0;
    bool is_in = false;  ///< knows that it is registered
    bool is_dead = false;
    bool is_over = false;   ///< has finished
    bool has_left = false;  ///< its process is over, in order
    bool lost_session = false;
    bool lost_board = false;
    bool had_succeeded = false;  ///< the attempt, as far as it knew then
    bool was_disturbed = false;
    Instant disturbed_until{};
    Instant came{};
    Instant died = base::far_future;
    Instant registered{};
    int signal = 0;  ///< the first one
    int signals_count = 0;
    Instant signalled{};
    std::optional<Instant> signalled_again;
    bool owes_departure = false;             ///< a verdict on an attempt that it was told to leave
    std::optional<int> ending;               ///< it knows of
    std::optional<launch::Plan> plan;        ///< the newest one that it knows
    std::optional<launch::Verdict> verdict;  ///< on it
    std::optional<int> ranks_of;             ///< the attempt that it was asked to start
    bool ends_ranks = false;
    std::set<std::pair<int, int>> running;  ///< processes: attempt, local rank

    bool is_there() const { return !is_dead && !is_over; }
  };
  /// The ranks of one node in an attempt.
  struct NodeRanks {
    int ended_well = 0;
    std::optional<Instant> first_well;
    Instant last_well{};
    std::set<int> failures;  ///< exit codes
    std::optional<Instant> first_failure;
    std::set<int> not_started;
    bool was_started = false;
    bool was_ended = false;
  };
  struct Spell {
    Instant since;
    Instant until;
  };
  struct Attempt {
    launch::Plan plan;
    Instant at{};
    std::size_t by = 0;
    std::map<std::uint64_t, NodeRanks> ranks;  ///< by the number of the node
    std::optional<launch::Verdict> verdict;
    Instant verdict_at{};
    std::size_t fewest_left = 0;              ///< since the verdict, of those that are not lost
    std::optional<Instant> misses_one_since;  ///< of its nodes
    std::optional<Instant> short_since;
    std::optional<Spell> last_short;
    std::set<std::uint64_t> stayed;  ///< those there all the time since the verdict
  };
  struct Run {
    std::string name;
    std::map<std::uint64_t, std::size_t> launchers;  ///< all that ever were, by their numbers
    std::set<std::uint64_t> there;
    Instant changed{};    ///< that set, last
    Instant led_since{};  ///< by the first of them
    std::deque<Attempt> attempts;
    std::optional<launch::Ending> ending;
    Instant ended{};
  };

  // Of one launcher, judge_launcher.cpp.
  void check(std::size_t who, const launch::StartRanks& effect);
  void check(std::size_t who, const launch::EndRanks& effect);
  void check(std::size_t who, const launch::Finish& effect);
  void check(std::size_t who, const launch::CountSuccess& effect);
  void check(std::size_t who, const launch::PublishVerdict& effect);
  void check(std::size_t who, const launch::PublishEnding& effect);
  void check(std::size_t who, const launch::Unregister& effect);
  template <class Other>
  void check(std::size_t, const Other&) {}
  void note(Record& record, const launch::Registered& event);
  void note(Record& record, const launch::PlanSeen& event);
  void note(Record& record, const launch::VerdictSeen& event);
  void note(Record& record, const launch::EndingSeen& event);
  void note(Record& record, const launch::BoardLost& event);
  void note(Record& record, const launch::Signalled& event);
  void note(Record& record, const launch::RanksGone& event);
  template <class Other>
  void note(Record&, const Other&) {}
  std::string why_wrong(const Record& record, Attempt& attempt, const launch::Verdict& verdict);
  std::string why_not_failed(const NodeRanks& ranks, const launch::Verdict& verdict) const;
  std::string why_not_lost(const Run& run, const Attempt& attempt,
                           const launch::Verdict& verdict) const;

  // Of what is on the board, judge_board.cpp.
  void plan_counts(std::size_t who, Run& run, const launch::Plan& plan);
  void verdict_counts(std::size_t who, Run& run, int attempt, launch::Verdict verdict);
  void ending_counts(std::size_t who, Run& run, const launch::Ending& ending);
  void check_nodes(const Run& run, const launch::Plan& plan, const std::string& name);
  void check_begin(std::size_t who, const Run& run, const launch::Plan& plan);
  void check_next(std::size_t who, const Run& run, const Attempt& last, const launch::Plan& plan);
  void check_restarts(std::size_t who, const Run& run, const launch::Plan& plan,
                      const std::string& name);
  bool was_short_for_long(std::size_t who, const Run& run, const Attempt& last) const;
  std::string why_not_over(std::size_t who, const Run& run, const launch::Ending& ending) const;
  void look_at_left(Run& run);

  // What is due, judge_due.cpp.
  void look_at(Run& run);
  void look_at_running(const Run& run, const Attempt& attempt);
  void look_at_launcher(std::size_t who, const Record& record);
  void due(Instant since, Duration within, const std::string& what);

  Run& run_of(const Record& record) { return runs_.at(record.run); }
  Attempt* attempt_of(const Record& record, int attempt);
  bool has_leader(const Run& run) const;
  /// Not hindered, for so long that what it knows is not old.
  bool is_calm(const Record& record) const {
    return record.is_there() && !record.lost_session &&
           record.disturbed_until + std::chrono::seconds(3) < scheduler_.now();
  }
  std::string name_of(std::size_t who) const;
  void stir() { stirred_ = scheduler_.now(); }
  /// The longest way to the board and back, many times.
  Duration slack() const { return std::chrono::seconds(2) + 8 * story_.delay_max; }

  const Story& story_;
  const launch::JobOptions& options_;
  Scheduler& scheduler_;
  Trace& trace_;
  std::deque<Record> records_;
  std::map<std::string, Run> runs_;
  std::optional<Instant> board_died_;
  Instant stirred_{};  ///< when something has happened last that is no launcher's doing
  std::vector<std::string> problems_;
  std::array<std::uint64_t, counts_count> counts_{};
};

}  // namespace muster::sim::job
