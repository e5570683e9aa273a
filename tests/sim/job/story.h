#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../scheduler.h"
#include "launch/job_events.h"

namespace muster::sim::job {

/// Of the name of a run of a job, when nobody keeps it.
inline constexpr Duration run_lifetime = std::chrono::seconds(15);

/// What goes wrong.
enum class Strike : std::uint8_t {
  kill,       ///< of a launcher; the kernel closes its connection
  kill_host,  ///< with its ranks, and without a word
  pause,      ///< of a launcher: it acts late
  cut,        ///< of its connection
  signal,     ///< to a launcher
  signals,    ///< two of them
  rank,       ///< is killed, one on each node
  board,      ///< is gone
  all,        ///< launchers are killed
  most,       ///< all but one
};

/// When it does.
enum class Moment : std::uint8_t { at_a_time, at_plan, at_verdict, at_ending };

/// Whom it meets.
enum class Victim : std::uint8_t { slot, leader, publisher };

struct StrikePlan {
  Strike what = Strike::kill;
  Moment moment = Moment::at_a_time;
  Duration after{};
  Victim victim = Victim::slot;
  std::size_t slot = 0;
  Duration lasts{};
};

/// A place for a launcher: its node.
struct Slot {
  std::optional<Duration> comes;  ///< none: never
  int process_count = 1;
  std::optional<int> wanted_rank;
  std::optional<Duration> comes_again;  ///< another launcher, so long after the end of this one
};

/// What one seed is about; all of it follows from the seed.
struct Story {
  explicit Story(std::uint64_t seed);

  std::string text() const;

  std::uint64_t seed = 0;
  launch::JobOptions options;  ///< of all launchers, but for `self`
  Duration session_timeout{};  ///< of the board's server
  Duration grace{};
  Duration form_timeout{};
  Duration delay_max{};    ///< of the network
  bool is_hosted = false;  ///< the board is gone when the launcher of slot 0 is
  std::vector<Slot> slots;
  std::vector<StrikePlan> strikes;
  Duration length{};    ///< afterwards nothing goes wrong any more
  Duration rank_max{};  ///< how long ranks run at most
  // One of so many ranks; 0: none.
  std::uint64_t fails = 0;
  std::uint64_t hangs = 0;
  std::uint64_t disobeys = 0;   ///< SIGTERM
  std::uint64_t is_stuck = 0;   ///< and cannot be killed
  std::uint64_t not_there = 0;  ///< it cannot be started

 private:
  void draw_options(Random& random);
  void draw_slots(Random& random);
  void draw_strikes(Random& random);
};

}  // namespace muster::sim::job
