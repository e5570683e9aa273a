#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "communicator/arguments.h"
#include "communicator/gate.h"
#include "muster/process_group.h"

namespace muster::communicator {

/// Of a trouble that this rank only hears of, or waited for: another rank is at fault. When the
/// time is up, all are who waited then.
Error not_own(Error error);

/// One making of a communicator, as far as it is the same for all kinds: rounds of the group that
/// share one deadline, errors that say who, and the vote in the end. Without the vote also of what
/// it begins with, an id.
///
/// threads  one
class Making {
 public:
  using Clock = std::chrono::steady_clock;

  /// codec      of its rounds: a rank that makes another kind is told `collective_mismatch`
  /// operation  for its errors
  Making(StatelessProcessGroup& group, std::uint32_t codec, Duration timeout,
         const char* operation = "create")
      : group_(group),
        codec_(codec),
        timeout_(std::min(timeout, longest_timeout)),
        operation_(operation) {}

  StatelessProcessGroup& group() const { return group_; }
  std::uint32_t codec() const { return codec_; }
  Duration left() const;
  Duration passed() const;
  /// When what goes on beside the store must be over, so that the vote is left some time.
  Clock::time_point vote_begins() const;

  /// An all_gather.
  Result<std::vector<std::string>> gather(const std::string& own) const;

  /// All have it, or none: every rank says what is wrong with its part, if anything is.
  ///
  /// A rank that cannot learn the outcome leaves the group: the others may have it, and are told.
  ///
  /// errors  the first trouble that is more than a consequence of another (ranks: whose it is);
  ///         those of a collective; why `gate` is closed
  Result<void> vote(const std::optional<Error>& trouble, const Gate& gate) const;

  /// What every error of a making says.
  Error about(Error error) const;
  /// The same, and names the ranks that are meant.
  Error about_ranks(Error error, const std::function<bool(int rank)>& is_meant) const;

 private:
  StatelessProcessGroup& group_;
  const std::uint32_t codec_;
  const Duration timeout_;
  const char* const operation_;
  const Clock::time_point began_ = Clock::now();
};

}  // namespace muster::communicator
