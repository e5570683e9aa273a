#include "base/random.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace muster::base {
namespace {

/// Fills from the front; returns how many bytes it could not get.
std::size_t fill_by_getrandom(unsigned char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::getrandom(data, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;  // a sandbox may forbid the call
    data += got;
    size -= static_cast<std::size_t>(got);
  }
  return size;
}

std::size_t fill_by_device(unsigned char* data, std::size_t size) {
  const int file = ::open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (file < 0) return size;
  while (size > 0) {
    const ssize_t got = ::read(file, data, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    data += got;
    size -= static_cast<std::size_t>(got);
  }
  ::close(file);
  return size;
}

/// The last resort where a sandbox hides both sources: what the kernel gave this process at its
/// start, stirred with clock, pid and a counter. Unique, but not secret.
void fill_by_stirring(unsigned char* data, std::size_t size) {
  static std::atomic<std::uint64_t> counter{0};
  std::uint64_t state = 0;
  if (const auto* seed = reinterpret_cast<const void*>(::getauxval(AT_RANDOM))) {
    std::memcpy(&state, seed, sizeof(state));
  }
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  state ^= static_cast<std::uint64_t>(now.tv_nsec) << 32 ^ static_cast<std::uint64_t>(now.tv_sec);
  state ^= static_cast<std::uint64_t>(::getpid()) << 40;
  state += counter.fetch_add(1, std::memory_order_relaxed) * 0x9e3779b97f4a7c15U;
  for (std::size_t index = 0; index < size; ++index) {  // splitmix64, one byte of each number
    state += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = state;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
    data[index] = static_cast<unsigned char>(mixed ^ (mixed >> 31));
  }
}

}  // namespace

void fill_random(void* data, std::size_t size) {
  auto* const end = static_cast<unsigned char*>(data) + size;
  size = fill_by_getrandom(end - size, size);
  if (size > 0) size = fill_by_device(end - size, size);
  if (size > 0) fill_by_stirring(end - size, size);
}

std::uint64_t random_u64() {
  std::uint64_t number = 0;
  fill_random(&number, sizeof(number));
  return number;
}

}  // namespace muster::base
