#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/tensor.h"
#include "runtime/tensor/offer.h"
#include "runtime/tensor/steps.h"
#include "runtime/tensor/store_steps.h"

namespace muster::runtime {

class TensorState;

/// Of one element: the smallest parts and buckets hold it.
inline constexpr std::uint64_t element_bytes_max = 4096;

/// Gives the memory of the tensors that a call returns. What the host's own function throws is an
/// error first, so that the others hear of it.
class Allocation {
 public:
  explicit Allocation(const TensorOptions& options) : options_(options) {}

  /// errors  invalid_argument (the host gave another tensor than it was asked for, or nothing gives
  ///         memory on such a device), callback_failed (it has thrown), resource_exhausted
  Result<Tensor> make(Device device, Dtype dtype, const std::vector<std::int64_t>& shape);
  /// Throws what the host's function has thrown.
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  const TensorOptions& options_;
  std::exception_ptr thrown_;
};

/// One collective on tensors on one rank: what its ranks tell each other first, and by which way
/// the rest goes.
class TensorCall {
 public:
  /// Uses the memory that the ranks share, if they do: then the first one on a group makes it.
  /// Collective.
  ///
  /// group    lives as long
  /// errors   not_initialized, invalid_argument (the timeout), those of a collective
  static Result<TensorCall> begin(TensorRanks group, TensorCollective collective,
                                  const TensorOptions& options);

  int rank() const { return group_->rank(); }
  int world_size() const { return group_->world_size(); }
  StatelessProcessGroup& group() const { return *group_; }
  Steps::Clock::time_point deadline() const { return deadline_; }
  Duration left() const;
  const TensorOptions& options() const { return options_; }

  /// An offer of this collective for a tensor. If the tensor cannot be used, the offer says so.
  ///
  /// written  it is to be written, by this rank
  enum class Use : std::uint8_t { read, written };
  TensorOffer offer(const TensorView& tensor, Use use) const;
  /// The own error of a rank, for all.
  static void refuse(TensorOffer& offer, ErrorCode code, std::string why);

  /// Tells the others what this rank calls, and hears what they call. A tensor that fits into the
  /// first step goes along.
  ///
  /// payload  whose elements go along; null: none of this rank
  /// errors   those of `compare`, and of a step
  Result<std::vector<TensorOffer>> agree(const TensorOffer& own, const TensorView* payload);
  /// Whether a tensor of that size goes along.
  bool goes_along(DeviceType device, std::uint64_t bytes) const;
  /// Tells whether all ranks can go on, before what cannot be given up by one of them.
  ///
  /// failure  of this rank
  /// errors   the failure of the first rank that has one (ranks: those that have)
  Result<void> confirm(std::optional<Error> failure);
  /// Bytes of one rank's tensor by which the way is chosen -> the way.
  TensorWay way_for(DeviceType device, std::uint64_t bytes) const;

  /// The steps of the ranks: in shared memory, else through the store.
  Steps& steps();
  /// Those of a way, which is none of NCCL.
  Steps& steps_of(TensorWay way);
  Communicator* communicator(TensorWay way) const;

  /// Adds what every error contains.
  Error about(Error error) const;

 private:
  TensorCall(TensorRanks group, TensorCollective collective, const TensorOptions& options);
  std::optional<Error> refusal_of_way(const TensorView& tensor) const;

  StatelessProcessGroup* group_;
  RankGroup::Impl* ranks_;
  TensorCollective collective_;
  TensorOptions options_;
  Steps::Clock::time_point begun_;
  Steps::Clock::time_point deadline_;
  Steps* shared_ = nullptr;
  std::unique_ptr<Steps> through_store_;
  std::unique_ptr<Steps> through_gloo_;
};

}  // namespace muster::runtime
