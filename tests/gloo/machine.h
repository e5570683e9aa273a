#pragma once

#include <dirent.h>
#include <unistd.h>

#include <cstddef>
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

inline std::size_t entries_of(const char* path) {
  std::size_t count = 0;
  DIR* const folder = ::opendir(path);
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}
inline std::size_t thread_count() { return entries_of("/proc/self/task"); }
inline std::size_t descriptor_count() { return entries_of("/proc/self/fd"); }

}  // namespace muster::test
