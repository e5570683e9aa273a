#include "api/allocation_count.h"

#include <cstdlib>
#include <new>

namespace muster::test {
namespace {

thread_local std::uint64_t allocated_bytes = 0;

}  // namespace

AllocationCount::AllocationCount() : begin_(allocated_bytes) {}

std::uint64_t AllocationCount::bytes() const { return allocated_bytes - begin_; }

}  // namespace muster::test

void* operator new(std::size_t size) {
  muster::test::allocated_bytes += size;
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
