#pragma once

#include <cstdint>

#include "muster/types.h"

namespace muster::client {

/// The server that a group's process embeds, as far as the client may know of it. Its destructor
/// stops it without waiting.
class GroupHost {
 public:
  virtual ~GroupHost() = default;

  /// Waits until no session is left, at most for `linger`, and stops.
  ///
  /// returns  how many sessions were left
  virtual std::uint64_t stop(Duration linger) = 0;
};

}  // namespace muster::client
