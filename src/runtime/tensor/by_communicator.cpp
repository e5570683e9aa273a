#include "runtime/tensor/by_communicator.h"

#include <algorithm>
#include <string>

#include "muster/communicator.h"
#include "runtime/tensor/combine.h"
#include "runtime/tensor/copy.h"
#include "runtime/tensor/data_type.h"

namespace muster::runtime {

namespace {

/// With Gloo tensors go chunk by chunk, because those of some ranks may be strided: of these only
/// so much is copied at a time.
constexpr std::uint64_t chunk_bytes = std::uint64_t{16} << 20;

void* stream_of(const TensorCall& call, TensorWay way) {
  return way == TensorWay::nccl ? call.options().stream : nullptr;
}

/// Runs `move(memory, count)` on the tensor's elements, chunk by chunk, with the same counts on all
/// ranks: where they lie, if it is contiguous, else on copies, which are copied back.
template <class Move>
Result<void> on_elements(const TensorCall& call, TensorWay way, const TensorView& tensor,
                         const Move& move) {
  const std::uint64_t all = tensor.element_count();
  const std::uint64_t element_bytes = tensor.dtype.byte_count();
  const std::uint64_t chunk = way == TensorWay::nccl ? all : chunk_bytes / element_bytes;
  const bool is_contiguous = tensor.is_contiguous();
  std::vector<char> copy(is_contiguous ? 0 : std::min(chunk, all) * element_bytes);
  for (std::uint64_t first = 0; first < all; first += chunk) {
    const std::uint64_t count = std::min(chunk, all - first);
    if (!is_contiguous) pack(copy.data(), tensor, first, count);
    char* const memory =
        is_contiguous ? first_element(tensor) + first * element_bytes : copy.data();
    if (auto moved = move(memory, static_cast<std::size_t>(count)); !moved)
      return call.about(std::move(moved).error());
    if (!is_contiguous && !tensor.is_read_only) unpack(tensor, copy.data(), first, count);
  }
  return {};
}

}  // namespace

bool gloo_combines(Dtype dtype, ReduceOp operation) {
  const bool is_bitwise = operation == ReduceOp::bit_and || operation == ReduceOp::bit_or ||
                          operation == ReduceOp::bit_xor;
  if (is_bitwise || !data_type_of(dtype)) return false;
  if (dtype == dtype::float32 || dtype == dtype::float64)
    return operation != ReduceOp::max && operation != ReduceOp::min;
  return dtype.code == DtypeCode::signed_integer || dtype.code == DtypeCode::unsigned_integer;
}

std::optional<std::string> refusal_of_nccl(Dtype dtype, ReduceOp operation) {
  if (!data_type_of(dtype)) return "NCCL does not combine elements of type " + to_string(dtype);
  if (operation > ReduceOp::average) return "NCCL has no operation on bits";
  return {};
}

Result<void> all_reduce_by(TensorCall& call, TensorWay way, const TensorView& tensor,
                           ReduceOp operation) {
  return on_elements(call, way, tensor, [&](void* memory, std::size_t count) {
    return call.communicator(way)->all_reduce(memory, memory, count, *data_type_of(tensor.dtype),
                                              operation, stream_of(call, way), call.left());
  });
}

Result<void> broadcast_by(TensorCall& call, TensorWay way, const TensorView& tensor, int root) {
  return on_elements(call, way, tensor, [&](void* memory, std::size_t count) {
    return call.communicator(way)->broadcast(memory, memory, count * tensor.dtype.byte_count(),
                                             DataType::uint8, root, stream_of(call, way),
                                             call.left());
  });
}

Result<void> all_gather_by_nccl(TensorCall& call, const TensorView& tensor,
                                const std::vector<Tensor>& all) {
  Communicator& communicator = *call.communicator(TensorWay::nccl);
  auto gathered = communicator.grouped(
      [&]() -> Result<void> {
        for (int root = 0; root < call.world_size(); ++root) {
          const TensorView& its = all[static_cast<std::size_t>(root)].view();
          const TensorView& send = root == call.rank() ? tensor : its;
          auto sent = communicator.broadcast(
              first_element(send), first_element(its), static_cast<std::size_t>(its.byte_count()),
              DataType::uint8, root, call.options().stream, call.left());
          if (!sent) return sent;
        }
        return {};
      },
      call.left());
  return gathered ? std::move(gathered) : Result<void>(call.about(std::move(gathered).error()));
}

Result<void> reduce_scatter_by(TensorCall& call, TensorWay way, const TensorView& send,
                               const TensorView& receive, ReduceOp operation) {
  std::vector<char> sent(send.is_contiguous() ? 0 : send.byte_count());
  std::vector<char> received(receive.is_contiguous() ? 0 : receive.byte_count());
  if (!sent.empty()) pack(sent.data(), send, 0, send.element_count());
  auto done = call.communicator(way)->reduce_scatter(
      sent.empty() ? first_element(send) : sent.data(),
      received.empty() ? first_element(receive) : received.data(),
      static_cast<std::size_t>(receive.element_count()), *data_type_of(send.dtype), operation,
      stream_of(call, way), call.left());
  if (!done) return call.about(std::move(done).error());
  if (!received.empty()) unpack(receive, received.data(), 0, receive.element_count());
  return {};
}

}  // namespace muster::runtime
