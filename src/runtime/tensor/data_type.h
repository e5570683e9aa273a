#pragma once

#include <optional>

#include "muster/communicator.h"
#include "muster/tensor.h"

namespace muster::runtime {

/// What Gloo and NCCL call the type of a tensor's elements; none: they have no name for it.
inline std::optional<DataType> data_type_of(Dtype dtype) {
  if (dtype == dtype::int8) return DataType::int8;
  if (dtype == dtype::uint8) return DataType::uint8;
  if (dtype == dtype::int32) return DataType::int32;
  if (dtype == dtype::uint32) return DataType::uint32;
  if (dtype == dtype::int64) return DataType::int64;
  if (dtype == dtype::uint64) return DataType::uint64;
  if (dtype == dtype::float16) return DataType::float16;
  if (dtype == dtype::float32) return DataType::float32;
  if (dtype == dtype::float64) return DataType::float64;
  if (dtype == dtype::bfloat16) return DataType::bfloat16;
  if (dtype == dtype::float8_e4m3fn) return DataType::float8_e4m3;
  if (dtype == dtype::float8_e5m2) return DataType::float8_e5m2;
  return {};
}

}  // namespace muster::runtime
