#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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

  /// What is wrong before anybody is asked, if anything is: invalid_argument (timeout), forked (the
  /// group is that of the parent of this process).
  std::optional<Error> refusal() const;

  /// An all_gather.
  Result<std::vector<std::string>> gather(const std::string& own) const;

  /// Every rank's presence, by rank, if all can take part.
  ///
  /// errors  that of `verdict_on` them (ranks: who is at fault), protocol_error, those of a
  ///         collective
  template <class Presence, class Decode>
  Result<std::vector<Presence>> call_roll(const Presence& own, const Decode& decode) const {
    const auto all = gather(encode(own));
    if (!all) return all.error();
    std::vector<Presence> presences;
    for (const std::string& bytes : *all) {
      auto presence = decode(bytes);
      if (!presence) return about(std::move(presence).error());
      presences.push_back(*std::move(presence));
    }
    if (auto verdict = verdict_on(presences)) {
      return about_ranks(std::move(verdict->error), verdict->is_at_fault);
    }
    return presences;
  }

  /// The rest: `enter` (into NCCL or Gloo), the vote, and all have it, or none: then `abandon`.
  template <class Impl, class Enter, class Abandon>
  Result<std::shared_ptr<Impl>> finish(std::shared_ptr<Impl> impl, const Enter& enter,
                                       const Abandon& abandon) const {
    const Duration before = passed();
    const Result<void> entered = enter();
    const Duration library = passed() - before;
    std::optional<Error> trouble;
    if (!entered) trouble = entered.error();
    if (auto voted = vote(trouble, impl->gate()); !voted) {
      abandon();
      impl->end(voted.error());
      return std::move(voted).error();
    }
    if (const auto over = impl->commit({passed(), library})) return about(*over);
    return impl;
  }

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
