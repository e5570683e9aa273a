#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "../scheduler.h"
#include "../subject.h"
#include "../trace.h"
#include "board.h"
#include "judge.h"
#include "land.h"
#include "launcher.h"
#include "story.h"

namespace muster::sim::job {

/// One story: the launchers of a job from the first that comes to the last that ends, and of the
/// next job of its name.
class World {
 public:
  World(std::uint64_t seed, bool is_printed);

  Outcome run();

 private:
  void spawn(std::size_t slot);
  void strike(const StrikePlan& plan, std::size_t publisher);
  void strike_at(const StrikePlan& plan, Launcher& victim);
  void strike_all(Strike what);
  void lose_board();
  void strike_on(Moment moment, std::size_t publisher);
  Launcher* alive_in(std::size_t slot);
  void look();
  Duration longest() const;

  const Story story_;
  Scheduler scheduler_;
  Random random_;
  Trace trace_;
  Board board_;
  Judge judge_;
  Land land_;
  std::deque<Launcher> launchers_;
  std::vector<bool> came_again_;     ///< by slot
  std::vector<StrikePlan> awaited_;  ///< strikes at what has not happened yet
};

}  // namespace muster::sim::job
