#pragma once

#include <cstdint>

// What the echo server understands: a head, and so many bytes behind it. It knows nothing of keys;
// it moves as many bytes as an operation has to, in the same number of packets, and does no work.

namespace muster::bench {

/// When there is an answer.
enum class EchoOrder : std::uint32_t {
  answer = 0,   ///< at once
  park = 1,     ///< when somebody says `release`
  release = 2,  ///< at once, and then the parked ones, one write each
  meet = 3,     ///< with a head alone, when as many as `reply_bytes` says have said so; the first
                ///< of them when the others have also said `confirm`
  confirm = 4,  ///< not
};

struct EchoHead {
  std::uint32_t body_bytes = 0;   ///< that follow
  std::uint32_t reply_bytes = 0;  ///< of the answer, behind a head of its own
  EchoOrder order = EchoOrder::answer;
};

}  // namespace muster::bench
