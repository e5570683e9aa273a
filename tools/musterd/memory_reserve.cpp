#include "memory_reserve.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>

namespace musterd {
namespace {

using Clock = std::chrono::steady_clock;

// Some thousand requests of the usual size; a larger one is refused when it comes in.
constexpr std::size_t reserve_bytes = 4U << 20;
constexpr auto refill_interval = std::chrono::milliseconds(50);

std::atomic<void*> reserve{nullptr};
Clock::time_point next_refill;

void spend() {
  void* const held = reserve.exchange(nullptr);
  if (held == nullptr) throw std::bad_alloc();
  std::free(held);
}

}  // namespace

MemoryReserve::MemoryReserve() {
  reserve = std::malloc(reserve_bytes);
  std::set_new_handler(spend);
}

MemoryReserve::~MemoryReserve() {
  std::set_new_handler(nullptr);
  std::free(reserve.exchange(nullptr));
}

bool MemoryReserve::is_spent() {
  if (reserve != nullptr) return false;
  const auto now = Clock::now();
  if (now < next_refill) return true;
  next_refill = now + refill_interval;
  reserve = std::malloc(reserve_bytes);
  return reserve == nullptr;
}

}  // namespace musterd
