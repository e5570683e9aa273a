#include "base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>

namespace muster::base {

bool futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, Instant until) {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  const auto at = std::max(until.time_since_epoch(), Duration::zero());
  timespec time{};
  time.tv_sec = static_cast<std::time_t>(at / std::chrono::seconds(1));
  time.tv_nsec = static_cast<long>((at % std::chrono::seconds(1)) / std::chrono::nanoseconds(1));
  const long slept = ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
                               &time, nullptr, FUTEX_BITSET_MATCH_ANY);
  return slept == 0 || errno != ETIMEDOUT;
}

void futex_wake_one(const std::atomic<std::uint32_t>* word) noexcept {
  ::syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, nullptr, nullptr, 0);
}

}  // namespace muster::base
