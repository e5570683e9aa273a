#pragma once

#include <cstdint>

namespace muster::test {

/// Counts what this thread asks of `operator new` while it lives. The program that uses it links
/// allocation_count.cpp, which replaces that operator.
class AllocationCount {
 public:
  AllocationCount();
  std::uint64_t bytes() const;

 private:
  std::uint64_t begin_;
};

}  // namespace muster::test
