#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "core/watch/look.h"
#include "server/metrics/figures.h"

namespace muster::server {

/// What the thread that serves tells of all that there is, at one moment: plain data for others.
struct Seen {
  std::uint64_t number = 0;
  Figures figures;
  std::vector<core::GroupGlance> groups;
  std::vector<core::History::Change> changes;  ///< behind those that were known
  std::uint64_t last_change = 0;
  base::Instant taken{};
  base::Instant started{};  ///< of the engine
  Duration to_wall{};       ///< from such points in time to those since 1970
};

}  // namespace muster::server
