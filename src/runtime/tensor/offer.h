#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/tensor.h"

// What each rank tells the others at the beginning of a collective on tensors, and what they make
// of it: all compute the same.

namespace muster::runtime {

/// The collectives; their names are those of the public calls.
enum class TensorCollective : std::uint8_t {
  all_reduce = 1,
  broadcast = 2,
  all_gather = 3,
  reduce_scatter = 4,
  broadcast_state_dict = 5,
};
std::string_view name_of(TensorCollective collective);

/// What one rank calls.
struct TensorOffer {
  TensorCollective collective = TensorCollective::all_reduce;
  ReduceOp operation = ReduceOp::sum;
  TensorWay way = TensorWay::automatic;
  int root = -1;
  std::uint64_t store_bytes_max = 0;
  std::uint64_t bucket_bytes = 0;
  Dtype dtype;
  DeviceType device = DeviceType::cpu;
  /// Its rank confirms that it can go on also where the tensors go along; then all do.
  bool is_confirmed = false;
  std::vector<std::int64_t> shape;
  /// Why this rank cannot take part.
  std::optional<Error> refusal;
  /// Its tensor, if it goes along.
  std::string_view payload;

  /// Of the tensor.
  std::uint64_t byte_count() const;
};

/// Of an offer but its payload; at most `tensor_offer_bytes_max`.
std::string encode(const TensorOffer& offer);
inline constexpr std::size_t tensor_offer_bytes_max = 1024;

/// Of an encoded one, with its payload behind it. The view is into `bytes`.
///
/// errors  protocol_error
Result<TensorOffer> decode_tensor_offer(std::string_view bytes);

/// Whether the offers of all ranks, in their order, fit together. Shapes of an all_gather may
/// differ.
///
/// errors  what ranks have refused; else collective_mismatch or mismatch (ranks: those that differ
///         from rank 0)
Result<void> compare(const std::vector<TensorOffer>& offers);

}  // namespace muster::runtime
