#pragma once

#include <algorithm>
#include <utility>

#include "core/events.h"
#include "server/world.h"

namespace muster::server {

/// How long nothing was handled before a turn, and for how much of that the process did not run.
///
/// While this thread had a processor it ran: a turn that takes long is no gap. What it has worked
/// is known but for what it did between the last tick and the last turn, so that a gap is never
/// taken for longer than it was, and a turn costs nothing here.
class Lateness {
 public:
  explicit Lateness(const World& world) : world_(world) {}

  void ticks() { worked_at_tick_ = world_.worked(); }
  /// returns  how long it was since the last one; 0 for the first
  Duration turn_begins(base::Instant now) {
    const base::Instant before = std::exchange(last_turn_, now);
    return before == base::Instant{} ? Duration::zero() : now - before;
  }
  /// What the engine is told of such a time.
  core::Late event(Duration length) const {
    const Duration worked = std::max(world_.worked() - worked_at_tick_, Duration::zero());
    return {length, std::max(length - worked, Duration::zero())};
  }

 private:
  const World& world_;
  base::Instant last_turn_{};
  Duration worked_at_tick_{};
};

}  // namespace muster::server
