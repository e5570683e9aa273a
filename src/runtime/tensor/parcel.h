#pragma once

#include <string>
#include <string_view>

#include "muster/tensor.h"

namespace muster::runtime {

/// What goes through the server when one rank sends a tensor to another.
struct Parcel {
  /// store: the bytes follow; shared_memory: the name of a segment follows; gloo, nccl: the tensor
  /// comes by the communicator.
  TensorWay way = TensorWay::store;
  std::uint64_t number = 0;  ///< by a communicator: tells it apart from others of its sender
  Device device;             ///< at the sender
  Dtype dtype;
  std::vector<std::int64_t> shape;
  std::string_view rest;

  /// Of the tensor, contiguous, without its memory.
  TensorView view() const;
};

/// Of all but the rest; at most `parcel_bytes_max`.
inline constexpr std::size_t parcel_bytes_max = 1024;
std::string encode(const Parcel& parcel);

/// The view is into `bytes`.
///
/// errors  protocol_error
Result<Parcel> decode_parcel(std::string_view bytes);

}  // namespace muster::runtime
