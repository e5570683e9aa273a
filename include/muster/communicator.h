#pragma once

// What the communicators of muster/nccl_communicator.h and muster/gloo_communicator.h share.

#include <cstddef>
#include <cstdint>

#include "muster/config.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// What the elements of a buffer are.
enum class DataType : std::uint8_t {
  int8 = 0,
  uint8 = 1,
  int32 = 2,
  uint32 = 3,
  int64 = 4,
  uint64 = 5,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  bfloat16 = 9,
};

/// Bytes of one element; 0 of what is no DataType.
constexpr std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::int8:
    case DataType::uint8: return 1;
    case DataType::float16:
    case DataType::bfloat16: return 2;
    case DataType::int32:
    case DataType::uint32:
    case DataType::float32: return 4;
    case DataType::int64:
    case DataType::uint64:
    case DataType::float64: return 8;
  }
  return 0;
}

enum class ReduceOp : std::uint8_t { sum = 0, product = 1, max = 2, min = 3, average = 4 };

/// What a communicator does when a rank of its group is lost or leaves.
enum class OnLoss : std::uint8_t {
  abort,   ///< it is aborted at once: what hangs on its streams ends, later calls give why
  notify,  ///< `on_over` is told; the host ends it when it likes
};

/// How long a communicator took to be made, on this rank.
struct MakingTimes {
  Duration total{0};
  Duration library{0};  ///< of it in NCCL or Gloo, which also wait there for the other ranks
};

MUSTER_END_NAMESPACE
