#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/shared.h"
#include "runtime/rank_group.h"
#include "runtime/shared/folder.h"
#include "runtime/shared/new_file.h"
#include "runtime/shared/offer.h"
#include "runtime/shared/segment.h"

MUSTER_BEGIN_NAMESPACE

/// One call of a gathering function on one rank.
class detail::Gathering::Impl {
 public:
  enum class What : std::uint8_t { tensors, states };

  Impl(RankGroup::Impl& group, What what, const GatherOptions& options);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// Leads to one outcome on all ranks: the first one has what all gave, or nobody goes on.
  Result<void> begin(const std::optional<SharedStateView>& own);
  Result<void> end(const TurnOutcome& own);

  std::vector<TensorView> tensors;
  std::vector<std::optional<SharedStateView>> states;

 private:
  using Clock = std::chrono::steady_clock;

  int rank() const { return group_.group().rank(); }
  bool is_first() const { return !ranks_.empty() && ranks_.front() == rank(); }
  bool is_through_memory() const { return options_.folder.empty(); }
  std::string folder() const {
    return is_through_memory() ? std::string(runtime::shared_memory_folder) : options_.folder;
  }

  std::optional<Error> refusal(const std::optional<SharedStateView>& own) const;
  runtime::Offer make_offer(const std::optional<SharedStateView>& own);
  Result<runtime::NewFile> write(const SharedStateView& state) const;
  Result<std::vector<runtime::Offer>> exchange(const runtime::Offer& own);
  std::optional<Error> disagreement(const std::vector<runtime::Offer>& offers) const;
  std::optional<Error> troubles(const std::vector<runtime::Offer>& offers) const;
  Result<void> take_all(const std::vector<runtime::Offer>& offers,
                        const std::optional<SharedStateView>& own);
  Result<SharedStateView> take(const runtime::Offer& offer, Clock::time_point deadline);
  Result<SharedStateView> take_from_memory(const runtime::Offer& offer);
  Result<SharedStateView> take_from_folder(const runtime::Offer& offer, Clock::time_point deadline);
  Result<void> settle(const std::optional<runtime::Trouble>& own, Duration timeout);

  Error error_of(const runtime::Trouble& trouble, int teller) const;
  void blame(Error& error, int rank) const;
  Error about(Error error) const;

  RankGroup::Impl& group_;
  const What what_;
  const GatherOptions options_;
  std::vector<int> ranks_;
  runtime::NewFile file_;
  std::vector<runtime::SharedSegment> segments_;
  std::vector<Tensor> loaded_;
};

MUSTER_END_NAMESPACE
