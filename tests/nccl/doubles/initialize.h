#pragma once

#include "nccl/doubles/communicator.h"

namespace nccl_double {

/// What a config says of blocking, or what is wrong with it.
struct Blocking {
  bool is_blocking = true;
  int result = success;
};
Blocking blocking_of(const Config* config, Blocking otherwise);

}  // namespace nccl_double
