#include "runtime/tensor/call.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/failure.h"
#include "runtime/rank_group.h"
#include "runtime/tensor/copy.h"
#include "runtime/tensor/data_type.h"
#include "runtime/tensor/gloo_steps.h"
#include "runtime/tensor/state.h"

// A collective begins with one step in which each rank tells what it calls (an TensorOffer), so
// that all find the same: who refuses, who differs, and else by which way the tensors go. What fits
// into that step goes along with it.

namespace muster::runtime {

TensorCall::TensorCall(TensorRanks group, TensorCollective collective, const TensorOptions& options)
    : group_(group.group()),
      ranks_(group.ranks()),
      collective_(collective),
      options_(options),
      begun_(Steps::Clock::now()),
      deadline_(begun_ + cut_to_a_year(options.timeout)) {}

Result<TensorCall> TensorCall::begin(TensorRanks group, TensorCollective collective,
                                     const TensorOptions& options) {
  Error error;
  error.operation = name_of(collective);
  error.decided_by = "client";
  if (group.group() == nullptr) {
    error.code = ErrorCode::not_initialized;
    error.detail = "the RankGroup is of no ranks: call Runtime::init before";
    return error;
  }
  TensorCall call(group, collective, options);
  if (options.timeout <= Duration::zero())
    return call.about(base::failure(ErrorCode::invalid_argument, "timeout: above zero"));
  call.through_store_ = std::make_unique<StoreSteps>(call.group());
  if (call.ranks_ == nullptr) return call;
  auto shared = call.ranks_->tensors().shared(call.group(), call.ranks_->places(), call.deadline_);
  if (!shared) return call.about(std::move(shared).error());
  call.shared_ = *shared;
  return call;
}

Duration TensorCall::left() const {
  return std::max(Duration(1),
                  std::chrono::duration_cast<Duration>(deadline_ - Steps::Clock::now()));
}

TensorOffer TensorCall::offer(const TensorView& tensor, Use use) const {
  TensorOffer offer;
  offer.collective = collective_;
  offer.way = options_.way;
  offer.store_bytes_max = options_.store_bytes_max;
  offer.dtype = tensor.dtype;
  offer.device = tensor.device.type;
  if (!options_.refusal.empty()) {
    refuse(offer, ErrorCode::invalid_argument, options_.refusal);
    return offer;
  }
  if (auto valid = validate(tensor); !valid) {
    offer.refusal = std::move(valid).error();
    return offer;
  }
  offer.shape = tensor.shape;
  if (tensor.dtype.byte_count() > element_bytes_max) {
    refuse(offer, ErrorCode::invalid_argument,
           "an element has more than " + std::to_string(element_bytes_max) + " bytes");
  }
  if (tensor.dtype.byte_count() > through_store_->part_bytes_max()) {
    refuse(offer, ErrorCode::too_large,
           "an element does not fit into what the server takes of a rank at once, " +
               std::to_string(through_store_->part_bytes_max()) +
               " bytes: raise its value_bytes_max and round_bytes_max");
  }
  if (use == Use::written && tensor.is_read_only) {
    refuse(offer, ErrorCode::invalid_argument, "the tensor is read-only, and would be written");
  } else if (use == Use::written && overlaps_itself(tensor)) {
    refuse(offer, ErrorCode::invalid_argument,
           "elements of the tensor that would be written lie at the same place: see its strides");
  } else if (!offer.refusal) {
    offer.refusal = refusal_of_way(tensor);
  }
  return offer;
}

void TensorCall::refuse(TensorOffer& offer, ErrorCode code, std::string why) {
  if (!offer.refusal) offer.refusal = base::failure(code, std::move(why));
}

/// Why a tensor cannot go by the way that was asked for, or chosen by its device.
std::optional<Error> TensorCall::refusal_of_way(const TensorView& tensor) const {
  const auto no = [](ErrorCode code, std::string why) {
    return base::failure(code, std::move(why));
  };
  const TensorWay way = way_for(tensor.device.type, 0);
  if (static_cast<std::uint8_t>(way) > static_cast<std::uint8_t>(TensorWay::nccl))
    return no(ErrorCode::invalid_argument, "TensorOptions::way is none of TensorWay");
  const std::string device = to_string(tensor.device);
  if (way != TensorWay::nccl) {
    if (!tensor.device.is_host()) {
      return no(ErrorCode::invalid_argument, "the tensor is on " + device + ", and the way '" +
                                                 std::string(name_of(way)) +
                                                 "' takes host memory: copy it");
    }
  } else if (tensor.device.type != DeviceType::cuda &&
             tensor.device.type != DeviceType::cuda_managed) {
    return no(ErrorCode::invalid_argument,
              "the tensor is on " + device + ", and NCCL takes memory of a CUDA device");
  } else if (!tensor.is_contiguous()) {
    return no(ErrorCode::invalid_argument, "NCCL takes contiguous tensors: copy it");
  }
  if (way == TensorWay::shared_memory && shared_ == nullptr && world_size() > 1) {
    return no(ErrorCode::way_missing,
              "the ranks share no memory: " +
                  (ranks_ == nullptr ? "give a RankGroup" : ranks_->tensors().why_not()));
  }
  if ((way == TensorWay::gloo || way == TensorWay::nccl) && communicator(way) == nullptr) {
    return no(ErrorCode::way_missing,
              std::string("the group has no communicator ") +
                  (way == TensorWay::gloo ? "'cpu:gloo'" : "'cuda:nccl'") +
                  ": ask for it in RuntimeOptions or SubgroupOptions::communicators");
  }
  return {};
}

bool TensorCall::goes_along(DeviceType device, std::uint64_t bytes) const {
  if (!Device{device, 0}.is_host()) return false;
  const Steps& first = shared_ != nullptr ? *shared_ : *through_store_;
  if (bytes + tensor_offer_bytes_max > first.part_bytes_max()) return false;
  if (options_.way != TensorWay::automatic)
    return options_.way == (shared_ != nullptr ? TensorWay::shared_memory : TensorWay::store);
  return shared_ != nullptr || bytes <= options_.store_bytes_max;
}

TensorWay TensorCall::way_for(DeviceType device, std::uint64_t bytes) const {
  if (options_.way != TensorWay::automatic) return options_.way;
  if (!Device{device, 0}.is_host()) return TensorWay::nccl;
  if (shared_ != nullptr) return TensorWay::shared_memory;
  const bool has_gloo = communicator(TensorWay::gloo) != nullptr;
  return bytes > options_.store_bytes_max && has_gloo ? TensorWay::gloo : TensorWay::store;
}

Communicator* TensorCall::communicator(TensorWay way) const {
  return ranks_ == nullptr ? nullptr
                           : ranks_->communicator(way == TensorWay::gloo ? "cpu" : "cuda");
}

Steps& TensorCall::steps() { return shared_ != nullptr ? *shared_ : *through_store_; }

Steps& TensorCall::steps_of(TensorWay way) {
  if (way == TensorWay::store) return *through_store_;
  if (way != TensorWay::gloo) return steps();
  if (!through_gloo_) through_gloo_ = std::make_unique<GlooSteps>(*communicator(way));
  return *through_gloo_;
}

Result<std::vector<TensorOffer>> TensorCall::agree(const TensorOffer& own,
                                                   const TensorView* payload) {
  const bool is_whole =
      payload != nullptr && !own.refusal && goes_along(own.device, payload->byte_count());
  const std::string head = encode(own);
  const std::size_t payload_bytes = is_whole ? static_cast<std::size_t>(payload->byte_count()) : 0;
  char* const part = steps().own_part(head.size() + payload_bytes);
  std::memcpy(part, head.data(), head.size());
  if (payload_bytes > 0) pack(part + head.size(), *payload, 0, payload->element_count());
  if (auto stepped = steps().exchange(head.size() + payload_bytes, deadline_); !stepped)
    return about(std::move(stepped).error());
  std::vector<TensorOffer> offers;
  for (int rank = 0; rank < world_size(); ++rank) {
    auto offer = decode_tensor_offer(steps().part(rank));
    if (!offer) {
      Error error = std::move(offer).error();
      error.ranks.emplace_back().rank = rank;
      error.rank_ranges = {{rank, rank}};
      return about(std::move(error));
    }
    offers.push_back(*std::move(offer));
  }
  if (auto same = compare(offers); !same) return about(std::move(same).error());
  return offers;
}

Result<void> TensorCall::confirm(std::optional<Error> failure) {
  TensorOffer own;
  own.collective = collective_;
  own.refusal = std::move(failure);
  auto all = agree(own, nullptr);
  if (!all) return std::move(all).error();
  return {};
}

Error TensorCall::about(Error error) const {
  error.operation = name_of(collective_);
  error.group = group_->name();
  error.epoch = group_->epoch();
  if (error.elapsed == Duration::zero())
    error.elapsed = std::chrono::duration_cast<Duration>(Steps::Clock::now() - begun_);
  if (error.code == ErrorCode::timed_out && error.decided_by_timeout == Duration::zero())
    error.decided_by_timeout = options_.timeout;  // that of all ranks
  if (error.decided_by.empty()) error.decided_by = "client";
  introduce(error, ranks_);
  return error;
}

Result<Tensor> Allocation::make(Device device, Dtype dtype,
                                const std::vector<std::int64_t>& shape) {
  if (!options_.allocate) {
    if (device.is_host()) return Tensor::make(dtype, shape);
    return base::failure(ErrorCode::invalid_argument, "there is no memory for a tensor on " +
                                                          to_string(device) +
                                                          ": give TensorOptions::allocate");
  }
  Result<Tensor> made = base::failure(ErrorCode::callback_failed,
                                      "TensorOptions::allocate has thrown no std::exception");
  try {
    made = options_.allocate(device, dtype, shape);
  } catch (const std::exception& thrown) {
    thrown_ = std::current_exception();
    made = base::failure(ErrorCode::callback_failed, thrown.what());
  } catch (...) {
    thrown_ = std::current_exception();
  }
  if (!made) return made;
  const TensorView& view = made->view();
  const bool fits = validate(view) && view.dtype == dtype && view.shape == shape &&
                    view.device.is_host() == device.is_host() && !view.is_read_only &&
                    !overlaps_itself(view);
  if (fits) return made;
  return base::failure(ErrorCode::invalid_argument,
                       "TensorOptions::allocate gave " + to_string(view) +
                           ", which cannot be written as " + to_string(dtype) + " on " +
                           to_string(device) + " of the shape that it was asked for");
}

}  // namespace muster::runtime
