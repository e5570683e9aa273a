#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "muster/communicator.h"

namespace muster::communicator {

enum class Operation : std::uint8_t {
  all_reduce,
  broadcast,
  reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  scatter,
  send,
  recv,
  all_gather_v,
  reduce_scatter_v,
  gather_v,
  scatter_v,
};

/// One call of an operation, with the arguments that the host gave.
struct OperationCall {
  Operation operation;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;
  DataType type = DataType::uint8;
  Reduction reduction = ReduceOp::sum;
  int rank = 0;  ///< the root or the peer
  void* stream = nullptr;
  Duration timeout{0};
  std::string_view name = {};  ///< the public function
  /// Of the operations that end in _v: how many elements are those of each rank, in place of
  /// `count`.
  Span<const std::size_t> counts = {};
};

/// The elements of a rank in the larger buffer: how many, and behind how many others.
inline std::size_t count_of(const OperationCall& call, int rank) {
  return call.counts.empty() ? call.count : call.counts[static_cast<std::size_t>(rank)];
}
inline std::size_t offset_in(Span<const std::size_t> counts, int rank) {
  std::size_t offset = 0;
  for (int before = 0; before < rank; ++before) offset += counts[static_cast<std::size_t>(before)];
  return offset;
}
inline std::size_t offset_of(const OperationCall& call, int rank) {
  if (call.counts.empty()) return static_cast<std::size_t>(rank) * call.count;
  return offset_in(call.counts, rank);
}

/// The name of the public function.
///
/// The libraries of each kind do not have this function: they use OperationCall::name.
std::string_view name_of(Operation operation);

/// invalid_argument if no kind of communicator can do it, else nothing.
std::optional<Error> refusal_of(const OperationCall& call, int own_rank, int world_size);

}  // namespace muster::communicator
