#include <algorithm>
#include <utility>

#include "base/failure.h"
#include "muster/tensor.h"
#include "runtime/tensor/by_communicator.h"
#include "runtime/tensor/by_steps.h"
#include "runtime/tensor/call.h"
#include "runtime/tensor/combine.h"
#include "runtime/tensor/copy.h"

// The public collectives. Each says what it calls, hears what the others call, takes what went
// along with that, or else goes the way of its size.

MUSTER_BEGIN_NAMESPACE

using runtime::Sources;
using runtime::TensorCall;
using runtime::TensorCollective;
using runtime::TensorOffer;
using Use = runtime::TensorCall::Use;

namespace {

void refuse_operation(const TensorCall& call, TensorOffer& own, ReduceOp operation) {
  own.operation = operation;
  auto why = runtime::refusal_of(own.dtype, operation);
  if (!why && call.way_for(own.device, 0) == TensorWay::nccl)
    why = runtime::refusal_of_nccl(own.dtype, operation);
  if (why) TensorCall::refuse(own, ErrorCode::invalid_argument, *std::move(why));
}

void refuse_root(const TensorCall& call, TensorOffer& own, Rank root) {
  own.root = root.number;
  if (root.number >= 0 && root.number < call.world_size()) return;
  TensorCall::refuse(own, ErrorCode::invalid_argument,
                     "there is no rank " + std::to_string(root.number));
}

Result<Sources> payloads_of(const TensorCall& call, const std::vector<TensorOffer>& offers,
                            std::uint64_t bytes) {
  Sources sources;
  for (const TensorOffer& offer : offers) {
    if (offer.payload.size() != bytes) {
      return call.about(
          base::failure(ErrorCode::protocol_error, "a rank gave other bytes than its tensor has"));
    }
    sources.push_back(offer.payload.data());
  }
  return sources;
}

/// Why `receive` is not this rank's part of `send`; empty: it is.
std::string misfit(const TensorView& send, const TensorView& receive, int world_size) {
  std::vector<std::int64_t> part = send.shape;
  const bool is_divisible = !part.empty() && part.front() % world_size == 0;
  if (is_divisible) part.front() /= world_size;
  if (is_divisible && part == receive.shape && send.dtype == receive.dtype &&
      send.device == receive.device)
    return {};
  return "`receive` is " + to_string(receive) + ", and is to be one of " +
         std::to_string(world_size) + " parts of `send`, " + to_string(send) +
         ", along its first dimension";
}

/// Where a tensor's memory may be: of a contiguous one exactly.
bool may_overlap(const TensorView& a, const TensorView& b) {
  if (!a.is_contiguous() || !b.is_contiguous()) return a.data == b.data;
  const auto begin_of = [](const TensorView& view) {
    return reinterpret_cast<std::uintptr_t>(runtime::first_element(view));
  };
  return begin_of(a) < begin_of(b) + b.byte_count() && begin_of(b) < begin_of(a) + a.byte_count();
}

}  // namespace

Result<void> all_reduce_tensor(TensorRanks group, const TensorView& tensor, ReduceOp operation,
                               const TensorOptions& options) {
  auto call = TensorCall::begin(group, TensorCollective::all_reduce, options);
  if (!call) return std::move(call).error();
  TensorOffer own = call->offer(tensor, Use::written);
  refuse_operation(*call, own, operation);
  auto offers = call->agree(own, &tensor);
  if (!offers) return std::move(offers).error();
  const std::uint64_t bytes = tensor.byte_count();
  if (bytes == 0) return {};
  if (call->goes_along(own.device, bytes)) {
    auto sources = payloads_of(*call, *offers, bytes);
    if (!sources) return std::move(sources).error();
    return combine_sources(*call, call->steps(), *sources, tensor, 0, tensor.element_count(),
                           operation);
  }
  const TensorWay way = call->way_for(own.device, bytes);
  if (way == TensorWay::nccl ||
      (way == TensorWay::gloo && runtime::gloo_combines(tensor.dtype, operation)))
    return runtime::all_reduce_by(*call, way, tensor, operation);
  return runtime::all_reduce_by(*call, call->steps_of(way), tensor, operation);
}

Result<void> broadcast_tensor(TensorRanks group, const TensorView& tensor, Rank root,
                              const TensorOptions& options) {
  auto call = TensorCall::begin(group, TensorCollective::broadcast, options);
  if (!call) return std::move(call).error();
  const bool is_root = call->rank() == root.number;
  TensorOffer own = call->offer(tensor, is_root ? Use::read : Use::written);
  refuse_root(*call, own, root);
  auto offers = call->agree(own, is_root ? &tensor : nullptr);
  if (!offers) return std::move(offers).error();
  const std::uint64_t bytes = tensor.byte_count();
  if (bytes == 0) return {};
  if (call->goes_along(own.device, bytes)) {
    if (is_root) return {};
    auto source = payloads_of(*call, {(*offers)[static_cast<std::size_t>(root.number)]}, bytes);
    if (!source) return std::move(source).error();
    runtime::unpack(tensor, source->front(), 0, tensor.element_count());
    return {};
  }
  const TensorWay way = call->way_for(own.device, bytes);
  if (way == TensorWay::nccl || way == TensorWay::gloo)
    return runtime::broadcast_by(*call, way, tensor, root.number);
  return runtime::broadcast_by(*call, call->steps_of(way), tensor, root.number);
}

Result<std::vector<Tensor>> all_gather_tensor(TensorRanks group, const TensorView& tensor,
                                              const TensorOptions& options) {
  auto call = TensorCall::begin(group, TensorCollective::all_gather, options);
  if (!call) return std::move(call).error();
  TensorOffer own = call->offer(tensor, Use::read);
  own.is_confirmed = static_cast<bool>(options.allocate);  // which may fail, so the others listen
  auto offers = call->agree(own, &tensor);
  if (!offers) return std::move(offers).error();
  std::uint64_t most = 0;
  bool is_confirmed = false;
  for (const TensorOffer& offer : *offers) {
    most = std::max(most, offer.byte_count());
    is_confirmed = is_confirmed || offer.is_confirmed;
  }
  const bool went_along = call->goes_along(own.device, most);
  std::vector<Tensor> all;
  runtime::Allocation allocation(options);
  std::optional<Error> failure;
  for (const TensorOffer& offer : *offers) {
    auto made = allocation.make({own.device, tensor.device.index}, offer.dtype, offer.shape);
    if (!made && !failure) failure = std::move(made).error();
    all.push_back(made ? *std::move(made) : Tensor());
  }
  for (std::size_t rank = 0; went_along && !failure && rank < all.size(); ++rank) {
    const TensorView& its = all[rank].view();
    auto source = payloads_of(*call, {(*offers)[rank]}, its.byte_count());
    if (source) {
      runtime::unpack(its, source->front(), 0, its.element_count());
    } else {
      failure = std::move(source).error();
    }
  }
  Result<void> confirmed;
  if (!went_along || is_confirmed) {
    confirmed = call->confirm(std::move(failure));
  } else if (failure) {
    confirmed = call->about(*std::move(failure));
  }
  allocation.rethrow();
  if (!confirmed) return std::move(confirmed).error();
  if (went_along) return all;
  const TensorWay way = call->way_for(own.device, most);
  auto gathered = way == TensorWay::nccl
                      ? runtime::all_gather_by_nccl(*call, tensor, all)
                      : runtime::all_gather_by(*call, call->steps_of(way), tensor, all);
  if (!gathered) return std::move(gathered).error();
  return all;
}

Result<void> reduce_scatter_tensor(TensorRanks group, const TensorView& send,
                                   const TensorView& receive, ReduceOp operation,
                                   const TensorOptions& options) {
  auto call = TensorCall::begin(group, TensorCollective::reduce_scatter, options);
  if (!call) return std::move(call).error();
  TensorOffer own = call->offer(send, Use::read);
  refuse_operation(*call, own, operation);
  if (auto written = call->offer(receive, Use::written).refusal)
    TensorCall::refuse(own, written->code, "`receive`: " + written->detail);
  if (std::string why = misfit(send, receive, call->world_size()); !why.empty())
    TensorCall::refuse(own, ErrorCode::invalid_argument, std::move(why));
  if (!own.refusal && send.byte_count() > 0 && may_overlap(send, receive))
    TensorCall::refuse(own, ErrorCode::invalid_argument, "`receive` overlaps `send`");
  auto offers = call->agree(own, &send);
  if (!offers) return std::move(offers).error();
  const std::uint64_t bytes = send.byte_count();
  if (bytes == 0) return {};
  if (call->goes_along(own.device, bytes)) {
    auto sources = payloads_of(*call, *offers, bytes);
    if (!sources) return std::move(sources).error();
    for (const void*& source : *sources)
      source = static_cast<const char*>(source) +
               static_cast<std::uint64_t>(call->rank()) * receive.byte_count();
    runtime::combine_here(*sources, receive, 0, receive.element_count(), operation);
    return {};
  }
  const TensorWay way = call->way_for(own.device, bytes);
  if (way == TensorWay::nccl ||
      (way == TensorWay::gloo && runtime::gloo_combines(send.dtype, operation)))
    return runtime::reduce_scatter_by(*call, way, send, receive, operation);
  return runtime::reduce_scatter_by(*call, call->steps_of(way), send, receive, operation);
}

MUSTER_END_NAMESPACE
