#pragma once

#include <atomic>
#include <cstdint>

#include "base/time.h"

namespace muster::base {

/// Sleeps until `word` is woken, or may be, unless it is not `expected`; at most until then.
///
/// returns  false when the time is over
bool futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, Instant until);

/// Wakes one thread that sleeps on `word`, of which only the address is used: it may be gone.
void futex_wake_one(const std::atomic<std::uint32_t>* word) noexcept;

}  // namespace muster::base
