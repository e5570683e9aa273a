#include "base/secret/secret_bytes.h"

#include <string.h>
#include <sys/mman.h>

#include <atomic>
#include <new>

// Nothing here waits for another thread: a child that was forked while one was at work goes on, and
// lacks at most the places that it held.

namespace muster::base {
namespace {

constexpr std::size_t place_bytes = 64;
constexpr std::size_t page_bytes = 4096;

union Place {
  Place* next;
  unsigned char bytes[place_bytes];
};

/// Of all threads. A page of places is kept once it is there.
std::atomic<Place*> free_places = nullptr;

/// returns  zeros
void* map(std::size_t size) {
  void* const mapped =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  // Where that fails, a dump has what it would have without it.
  ::madvise(mapped, size, MADV_DONTDUMP);
  return mapped;
}

/// Puts a list of places back.
void free(Place* first, Place* last) {
  last->next = free_places.load(std::memory_order_relaxed);
  while (!free_places.compare_exchange_weak(last->next, first, std::memory_order_release,
                                            std::memory_order_relaxed)) {
  }
}

/// What is left of a list when its first place is taken. Others have seldom freed any meanwhile.
void free_rest(Place* rest) {
  Place* none = nullptr;
  if (rest == nullptr || free_places.compare_exchange_strong(none, rest, std::memory_order_release,
                                                             std::memory_order_relaxed))
    return;
  Place* last = rest;
  while (last->next != nullptr) last = last->next;
  free(rest, last);
}

Place* new_places() {
  auto* const places = static_cast<Place*>(map(page_bytes));
  constexpr std::size_t count = page_bytes / sizeof(Place);
  for (std::size_t index = 0; index + 1 < count; ++index) {
    places[index].next = &places[index + 1];
  }
  return places;
}

unsigned char* take_place() {
  // The whole list: nobody else takes from it meanwhile, so that what is first in it stays first.
  Place* taken = free_places.exchange(nullptr, std::memory_order_acquire);
  if (taken == nullptr) taken = new_places();
  free_rest(taken->next);
  taken->next = nullptr;
  return taken->bytes;
}

#ifdef __x86_64__
__attribute__((target("avx"))) void zero_vectors() { __builtin_ia32_vzeroall(); }

__attribute__((target("avx512f"))) void zero_high_vectors() {
  asm volatile(
      ".irp n,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
      "vpxord %%zmm\\n, %%zmm\\n, %%zmm\\n\n"
      ".endr" ::
          : "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24",
            "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31");
}
#endif

}  // namespace

void clear_vector_registers() noexcept {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx") != 0) zero_vectors();
  if (__builtin_cpu_supports("avx512f") != 0) zero_high_vectors();
#endif
}

SecretBytes::SecretBytes(std::size_t size) : size_(size) {
  if (size == 0) return;
  bytes_ = size <= place_bytes ? take_place() : static_cast<unsigned char*>(map(size));
}

SecretBytes& SecretBytes::operator=(SecretBytes&& other) noexcept {
  if (this == &other) return *this;
  let_go();
  bytes_ = std::exchange(other.bytes_, nullptr);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

void SecretBytes::let_go() noexcept {
  if (bytes_ == nullptr) return;
  ::explicit_bzero(bytes_, size_);
  clear_vector_registers();
  if (size_ > place_bytes) {
    ::munmap(bytes_, size_);
  } else {
    auto* const place = reinterpret_cast<Place*>(bytes_);
    free(place, place);
  }
  bytes_ = nullptr;
  size_ = 0;
}

}  // namespace muster::base
