#pragma once

#include <cstdint>

namespace muster::test {

/// What one thread took from the allocator.
struct Allocated {
  std::uint64_t bytes = 0;      ///< asked for, given back or not
  std::int64_t live_bytes = 0;  ///< not given back, as the C library rounds them
};

/// Of the calling thread since it began. The program that asks links allocations.cpp, which
/// watches the allocator.
Allocated allocated();

/// How often any thread of the process has taken something since it began.
std::uint64_t allocations_of_process();

/// What all threads together have not given back.
std::int64_t live_bytes_of_process();

/// What `call` asks for.
template <class Call>
std::uint64_t bytes_allocated_by(const Call& call) {
  const std::uint64_t before = allocated().bytes;
  call();
  return allocated().bytes - before;
}

}  // namespace muster::test
