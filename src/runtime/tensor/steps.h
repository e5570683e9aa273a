#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

#include "muster/config.h"
#include "muster/result.h"

namespace muster::runtime {

/// How collectives on tensors move bytes: in steps, in each of which every rank gives a part and
/// then sees all parts. All ranks take the same steps with the same sizes in mind.
///
/// threads  one
class Steps {
 public:
  using Clock = std::chrono::steady_clock;

  Steps() = default;
  virtual ~Steps() = default;
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  /// The most bytes of one rank's part.
  virtual std::size_t part_bytes_max() const = 0;
  /// Whether a part costs only those who read it: then ranks share the work on a tensor.
  virtual bool is_shared() const = 0;
  /// Where this rank's part of the next step is to be written; valid until its exchange.
  virtual char* own_part(std::size_t bytes) = 0;
  /// Gives the first `bytes` of the own part to all ranks, and gets theirs. Collective.
  virtual Result<void> exchange(std::size_t bytes, Clock::time_point deadline) = 0;
  /// A rank's part of the last step; valid until the exchange of the next one. This rank may write
  /// its part of the next step meanwhile.
  virtual std::string_view part(int rank) const = 0;
};

}  // namespace muster::runtime
