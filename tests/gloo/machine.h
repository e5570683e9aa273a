#pragma once

#include <cstdint>
#include <thread>
#include <utility>

#include "muster/gloo.h"
#include "support/machine.h"

// What the tests of Gloo's communicators have in common.

namespace muster::test {

inline gloo::Options within(Duration timeout) {
  gloo::Options options;
  options.timeout = timeout;
  return options;
}

/// The sum of all ranks' numbers.
inline Result<std::int64_t> sum_of(Communicator& communicator, std::int64_t own,
                                   Duration timeout = default_timeout) {
  auto reduced =
      communicator.all_reduce(&own, &own, 1, DataType::int64, ReduceOp::sum, nullptr, timeout);
  if (!reduced) return std::move(reduced).error();
  return own;
}

}  // namespace muster::test
