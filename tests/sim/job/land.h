#pragma once

#include <cstddef>
#include <functional>

#include "../scheduler.h"
#include "../trace.h"
#include "board.h"
#include "judge.h"
#include "story.h"

namespace muster::sim::job {

/// Where launchers live.
struct Land {
  const Story& story;
  Scheduler& scheduler;
  Random& random;
  Trace& trace;
  Board& board;
  Judge& judge;
  /// Hears of what was put on the board and counts.
  std::function<void(Published what, std::size_t who)> put;
  bool is_calm = false;  ///< nothing goes wrong any more
};

}  // namespace muster::sim::job
