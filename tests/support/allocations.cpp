#include "support/allocations.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "support/sanitizers.h"

namespace muster::test {
namespace {

thread_local Allocated allocated_here;
std::atomic<std::uint64_t> allocations{0};
std::atomic<std::int64_t> live_bytes{0};

/// What the C library takes for a block: its size, a header of 8 bytes, rounded up.
std::int64_t taken_for(std::size_t block_bytes) {
  const auto rounded = static_cast<std::int64_t>((block_bytes + 8 + 15) / 16 * 16);
  return std::max<std::int64_t>(rounded, 32);
}

void on_taken(std::size_t asked_bytes, std::size_t block_bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const std::int64_t taken_bytes = taken_for(block_bytes);
  live_bytes.fetch_add(taken_bytes, std::memory_order_relaxed);
  allocated_here.bytes += asked_bytes;
  allocated_here.live_bytes += taken_bytes;
}

void on_given_back(std::size_t block_bytes) {
  const std::int64_t taken_bytes = taken_for(block_bytes);
  live_bytes.fetch_sub(taken_bytes, std::memory_order_relaxed);
  allocated_here.live_bytes -= taken_bytes;
}

}  // namespace

Allocated allocated() { return allocated_here; }

std::uint64_t allocations_of_process() { return allocations.load(); }

std::int64_t live_bytes_of_process() { return live_bytes.load(); }

}  // namespace muster::test

#if MUSTER_TEST_HAS_ASAN || MUSTER_TEST_HAS_TSAN

// The sanitizers have an allocator of their own, which reports what it does.
#include <sanitizer/allocator_interface.h>

namespace muster::test {
namespace {

void taken(const volatile void*, std::size_t bytes) { on_taken(bytes, bytes); }

void given_back(const volatile void* block) {
  if (block == nullptr) return;
  on_given_back(__sanitizer_get_allocated_size(block));
}

[[maybe_unused]] const int installed = __sanitizer_install_malloc_and_free_hooks(taken, given_back);

}  // namespace
}  // namespace muster::test

#else

void* operator new(std::size_t size) {
  void* const block = std::malloc(size == 0 ? 1 : size);
  if (block == nullptr) throw std::bad_alloc();
  muster::test::on_taken(size, malloc_usable_size(block));
  return block;
}

void operator delete(void* block) noexcept {
  if (block != nullptr) muster::test::on_given_back(malloc_usable_size(block));
  std::free(block);
}

void operator delete(void* block, std::size_t) noexcept { operator delete(block); }

#endif
