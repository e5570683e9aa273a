#pragma once

#include <cstddef>

namespace muster::test {

/// The allocations of this process are counted while `counting`. For one thread.
extern bool counting;
extern std::size_t allocated_bytes;

template <class Call>
std::size_t bytes_allocated_by(const Call& call) {
  allocated_bytes = 0;
  counting = true;
  call();
  counting = false;
  return allocated_bytes;
}

}  // namespace muster::test
