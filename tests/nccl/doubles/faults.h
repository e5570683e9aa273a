#pragma once

#include <chrono>

#include "nccl/doubles/socket.h"

namespace nccl_double {

enum class Phase {
  get_unique_id,
  init,
  check_in,
  ring,
  connect,
  ready,
  collective,
  abort,
  finalize,
  destroy,
  red_op,
};
constexpr int any_rank = -1;

/// What the faults want of a call, after they have blocked it.
struct CallFault {
  int result = 0;                       ///< to be given at once; 0: none
  std::chrono::milliseconds later{-1};  ///< of a collective; below 0: now
};
CallFault fault_of_call(Phase phase, int rank = any_rank);

/// What they want of the background, after they have delayed it.
struct InsideFault {
  int result = 0;           ///< it fails with this; 0: it does not
  bool is_forever = false;  ///< it goes no further
};
InsideFault fault_inside(Phase phase, int rank, const Cancel& cancel);

}  // namespace nccl_double
