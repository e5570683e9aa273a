#include "communicator/operation_call.h"

#include <limits>
#include <string>

#include "client/failure.h"

namespace muster::communicator {
namespace {

/// The ranks that use a buffer.
enum class UsedBy : std::uint8_t { nobody, root, all };

/// How an operation uses its buffers.
struct Shape {
  std::string_view name;
  UsedBy send = UsedBy::all;
  UsedBy receive = UsedBy::all;
  /// The larger buffer has `count` elements for each rank.
  bool has_part_per_rank = false;
  /// The received data would overwrite data that is not sent yet.
  bool needs_two_buffers = false;
  /// The ranks' parts have counts of their own.
  bool has_counts = false;
};

const Shape& shape_of(Operation operation) {
  static constexpr Shape shapes[] = {
      {"all_reduce"},
      {"broadcast", UsedBy::root, UsedBy::all},
      {"reduce", UsedBy::all, UsedBy::root},
      {"all_gather", UsedBy::all, UsedBy::all, true},
      {"reduce_scatter", UsedBy::all, UsedBy::all, true},
      {"all_to_all", UsedBy::all, UsedBy::all, true, true},
      {"gather", UsedBy::all, UsedBy::root, true},
      {"scatter", UsedBy::root, UsedBy::all, true},
      {"send", UsedBy::all, UsedBy::nobody},
      {"recv", UsedBy::nobody, UsedBy::all},
      {"all_gather_v", UsedBy::all, UsedBy::all, true, false, true},
      {"reduce_scatter_v", UsedBy::all, UsedBy::all, true, false, true},
      {"gather_v", UsedBy::all, UsedBy::root, true, false, true},
      {"scatter_v", UsedBy::root, UsedBy::all, true, false, true},
  };
  return shapes[static_cast<std::size_t>(operation)];
}

bool is_used(UsedBy ranks, bool is_root) {
  return ranks == UsedBy::all || (ranks == UsedBy::root && is_root);
}

/// The name of an integer type; empty: it is none.
std::string_view integer_name(DataType type) {
  switch (type) {
    case DataType::int8: return "int8";
    case DataType::uint8: return "uint8";
    case DataType::int32: return "int32";
    case DataType::uint32: return "uint32";
    case DataType::int64: return "int64";
    case DataType::uint64: return "uint64";
    default: return {};
  }
}

Error refusal_of_bits(std::string_view operation) {
  return client::invalid_argument(
      "reduction: " + std::string(operation) +
      ", but communicators have no operations on bits; reduce values by all_reduce_value, or "
      "tensors by all_reduce_tensor");
}

std::optional<Error> refusal_of_reduction(const OperationCall& call) {
  switch (call.reduction.operation()) {
    case ReduceOp::sum:
    case ReduceOp::product:
    case ReduceOp::max:
    case ReduceOp::min:
    case ReduceOp::average: break;
    case ReduceOp::bit_and: return refusal_of_bits("bit_and");
    case ReduceOp::bit_or: return refusal_of_bits("bit_or");
    case ReduceOp::bit_xor: return refusal_of_bits("bit_xor");
    default: return client::invalid_argument("reduction: not a ReduceOp");
  }
  const std::string_view integer = integer_name(call.type);
  if (!call.reduction.factor() || integer.empty()) return std::nullopt;
  return client::invalid_argument("type: " + std::string(integer) +
                                  ", but scaled_sum takes floating-point types; convert the "
                                  "elements first");
}

/// The elements of all ranks together; nothing: no memory holds so many.
std::optional<std::size_t> total_count(const OperationCall& call, const Shape& shape,
                                       int world_size) {
  const std::size_t count_max = std::numeric_limits<std::ptrdiff_t>::max() / size_of(call.type);
  std::size_t total = 0;
  for (int rank = 0; rank < (shape.has_part_per_rank ? world_size : 1); ++rank) {
    if (count_of(call, rank) > count_max - total) return std::nullopt;
    total += count_of(call, rank);
  }
  return total;
}

/// Whether the larger buffer is the one that is sent; only of operations with parts.
bool is_sent_whole(const OperationCall& call) {
  return call.operation == Operation::reduce_scatter_v || call.operation == Operation::scatter_v;
}

std::optional<Error> refusal_of_buffers(const OperationCall& call, const Shape& shape, int own_rank,
                                        int world_size, std::size_t total) {
  const std::size_t part = count_of(call, shape.has_counts ? own_rank : 0);
  const std::size_t sent = shape.has_counts && is_sent_whole(call) ? total : part;
  const std::size_t received = shape.has_counts && !is_sent_whole(call) ? total : part;
  const bool is_root = call.rank == own_rank;
  if (sent > 0 && is_used(shape.send, is_root) && call.send == nullptr) {
    return client::invalid_argument("send: null");
  }
  if (received > 0 && is_used(shape.receive, is_root) && call.receive == nullptr) {
    return client::invalid_argument("receive: null");
  }
  if (total == 0) return std::nullopt;
  if (shape.needs_two_buffers && call.send == call.receive && world_size > 1) {
    return client::invalid_argument("send and receive: not the same buffer");
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(Operation operation) { return shape_of(operation).name; }

std::optional<Error> refusal_of(const OperationCall& call, int own_rank, int world_size) {
  const Shape& shape = shape_of(call.operation);
  const std::size_t bytes = size_of(call.type);
  if (bytes == 0) return client::invalid_argument("type: not a DataType");
  if (auto refused = refusal_of_reduction(call)) return refused;
  if (call.rank < 0 || call.rank >= world_size) {
    return client::invalid_argument("rank " + std::to_string(call.rank) + ": ranks are 0 to " +
                                    std::to_string(world_size - 1));
  }
  if (shape.has_counts && call.counts.size() != static_cast<std::size_t>(world_size)) {
    return client::invalid_argument("counts: " + std::to_string(call.counts.size()) +
                                    ", but there are " + std::to_string(world_size) + " ranks");
  }
  const auto total = total_count(call, shape, world_size);
  if (!total) return client::invalid_argument("count: no memory holds so many elements");
  return refusal_of_buffers(call, shape, own_rank, world_size, *total);
}

}  // namespace muster::communicator
