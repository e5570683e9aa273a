#pragma once

#include <cstdint>

namespace muster::core {

/// What the engine holds at the moment, for status, tests and leak checks.
struct Counts {
  std::uint64_t sessions = 0;
  std::uint64_t observers = 0;  ///< of them
  std::uint64_t connections = 0;
  std::uint64_t keys = 0;
  std::uint64_t queues = 0;   ///< keys that have one
  std::uint64_t objects = 0;  ///< payloads of streams and rounds
  std::uint64_t groups = 0;
  std::uint64_t epochs = 0;
  std::uint64_t rounds = 0;  ///< open: not yet acknowledged by all
  std::uint64_t streams = 0;
  std::uint64_t waits = 0;  ///< parked requests
  std::uint64_t cached_results = 0;
  std::uint64_t timers = 0;
  std::uint64_t memory_bytes = 0;
};

}  // namespace muster::core
