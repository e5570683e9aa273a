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

#include "communicator/failure_notice.h"
#include "communicator/gate.h"
#include "communicator/timeouts.h"
#include "muster/process_group.h"

namespace muster::communicator {

/// `error`, as this rank reports it if another rank is at fault: `aborted`, which the vote takes
/// for a consequence. A timeout stays: all ranks that waited report it.
Error caused_elsewhere(Error error);

/// How the ranks of a group agree on a new communicator: a preflight round, the creation inside
/// NCCL or Gloo, a vote, the commit. All rounds share one deadline, and errors name ranks. An NCCL
/// id is agreed on with the rounds alone.
///
/// threads  one
class Agreement {
 public:
  using Clock = std::chrono::steady_clock;

  /// codec      of its rounds: ranks that make different kinds get `collective_mismatch`
  /// operation  for its errors
  Agreement(StatelessProcessGroup& group, std::uint32_t codec, Duration timeout,
            const char* operation = "create")
      : group_(group),
        codec_(codec),
        timeout_(std::min(timeout, longest_timeout)),
        operation_(operation) {}

  StatelessProcessGroup& group() const { return group_; }
  std::uint32_t codec() const { return codec_; }
  Duration left() const;
  Duration passed() const;
  /// When the creation inside NCCL or Gloo must be done: the vote needs the rest of the time.
  Clock::time_point vote_begins() const;

  /// An error that needs no other rank: invalid_argument (timeout), forked (the group belongs to
  /// the parent of this process).
  std::optional<Error> refusal() const;

  /// An all_gather.
  Result<std::vector<std::string>> gather(const std::string& own) const;

  /// Gathers the reports of all ranks. Succeeds if all ranks can take part.
  ///
  /// returns  the reports, by rank
  /// errors   that of `find_rejection` (ranks: those at fault), protocol_error, those of a
  ///          collective
  template <class Report, class Decode>
  Result<std::vector<Report>> run_preflight(const Report& own, const Decode& decode) const {
    const auto all = gather(encode(own));
    if (!all) return all.error();
    std::vector<Report> reports;
    for (const std::string& bytes : *all) {
      auto report = decode(bytes);
      if (!report) return about(std::move(report).error());
      reports.push_back(*std::move(report));
    }
    if (auto rejection = find_rejection(reports)) {
      return about_ranks(std::move(rejection->error), rejection->is_at_fault);
    }
    return reports;
  }

  /// Runs `enter` (NCCL's or Gloo's part) and the vote, and commits. If any rank failed, no rank
  /// keeps the communicator, and `abandon` runs. Those that are still in `enter` when the vote is
  /// cancelled are told by `notice`.
  template <class Impl, class Enter, class Abandon>
  Result<std::shared_ptr<Impl>> finish(std::shared_ptr<Impl> impl, FailureNotice& notice,
                                       const Enter& enter, const Abandon& abandon) const {
    const Duration before = passed();
    const Result<void> entered = enter();
    const Duration library = passed() - before;
    std::optional<Error> failure;
    if (!entered) failure = entered.error();
    if (auto voted = vote(failure, impl->gate()); !voted) {
      if (entered && voted.error().code == ErrorCode::cancelled) notice.post(voted.error(), left());
      abandon();
      impl->end(voted.error());
      return std::move(voted).error();
    }
    if (const auto ended = impl->commit({passed(), library})) return about(*ended);
    return impl;
  }

  /// Every rank reports whether its part succeeded. Succeeds if all parts did.
  ///
  /// A rank that cannot learn the outcome leaves the group: the other ranks may have the
  /// communicator, and are told so.
  ///
  /// errors  the first failure that is not a consequence of another one (ranks: with this failure);
  ///         those of a collective; why `gate` is closed
  Result<void> vote(const std::optional<Error>& failure, const Gate& gate) const;

  /// Adds what every error contains.
  Error about(Error error) const;
  /// The same, and the ranks for which `is_meant` holds.
  Error about_ranks(Error error, const std::function<bool(int rank)>& is_meant) const;

 private:
  StatelessProcessGroup& group_;
  const std::uint32_t codec_;
  const Duration timeout_;
  const char* const operation_;
  const Clock::time_point began_ = Clock::now();
};

}  // namespace muster::communicator
