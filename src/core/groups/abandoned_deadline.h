#pragma once

#include <cstdint>

#include "core/session/session.h"

namespace muster::core {

/// The earliest deadline of the calls of one round or regroup whose clients gave up waiting. Such a
/// call stays: its deadline decides as if its rank still waited.
struct AbandonedDeadline {
  Instant at = base::far_future;
  Duration timeout{};  ///< of the call whose deadline it is
  std::uint32_t rank = 0;

  /// The call of `its_rank` was abandoned. Returns whether its deadline is the earliest.
  bool add(const Parked& call, std::uint32_t its_rank) {
    if (call.deadline >= at) return false;
    *this = {call.deadline, call.timeout, its_rank};
    return true;
  }
};

}  // namespace muster::core
