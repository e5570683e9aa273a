#include "counted_allocations.h"

#include <cstdlib>
#include <new>

namespace muster::test {
bool counting = false;
std::size_t allocated_bytes = 0;
}  // namespace muster::test

void* operator new(std::size_t size) {
  if (muster::test::counting) muster::test::allocated_bytes += size;
  if (void* const memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
