#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/planted.h"

namespace muster::sim {

/// A bug that can be planted, and the promise that it breaks.
struct PlantedBug {
  base::Bug bug;
  std::string_view name;
  std::string_view what;
  bool hangs = false;  ///< a story may have no end with it, and is found by that
};

std::span<const PlantedBug> planted_bugs();

}  // namespace muster::sim
