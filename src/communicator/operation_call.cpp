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
  };
  return shapes[static_cast<std::size_t>(operation)];
}

bool is_used(UsedBy ranks, bool is_root) {
  return ranks == UsedBy::all || (ranks == UsedBy::root && is_root);
}

std::optional<Error> refusal_of_buffers(const OperationCall& call, const Shape& shape, int own_rank,
                                        int world_size) {
  if (call.count == 0) return std::nullopt;
  const bool is_root = call.rank == own_rank;
  if (is_used(shape.send, is_root) && call.send == nullptr) {
    return client::invalid_argument("send: null");
  }
  if (is_used(shape.receive, is_root) && call.receive == nullptr) {
    return client::invalid_argument("receive: null");
  }
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
  if (call.reduce_op > ReduceOp::average) {
    return client::invalid_argument("operation: not a ReduceOp");
  }
  if (call.rank < 0 || call.rank >= world_size) {
    return client::invalid_argument("rank " + std::to_string(call.rank) + ": ranks are 0 to " +
                                    std::to_string(world_size - 1));
  }
  const std::size_t parts = shape.has_part_per_rank ? static_cast<std::size_t>(world_size) : 1;
  const std::size_t bytes_max = std::numeric_limits<std::ptrdiff_t>::max();
  if (call.count > bytes_max / bytes / parts) {
    return client::invalid_argument("count: no memory holds so many elements");
  }
  return refusal_of_buffers(call, shape, own_rank, world_size);
}

}  // namespace muster::communicator
