#pragma once

#include <cstdint>

// What the echo server understands: a head, and so many bytes behind it. It knows nothing of keys;
// it moves as many bytes as an operation has to, in the same number of packets, and does no work.

namespace muster::bench {

enum class EchoOrder : std::uint32_t {
  answer = 0,   ///< at once
  park = 1,     ///< when somebody says `release`
  release = 2,  ///< at once, and then the parked ones, one write each
  meet = 3,     ///< when as many as `reply_bytes` says have said so; with a head alone
};

struct EchoHead {
  std::uint32_t body_bytes = 0;   ///< that follow
  std::uint32_t reply_bytes = 0;  ///< of the answer, behind a head of its own
  EchoOrder order = EchoOrder::answer;
};

}  // namespace muster::bench
