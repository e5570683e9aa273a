#include "nccl/enqueue.h"

#include <cstddef>

#include "nccl/functions.h"
#include "nccl/scaled_op.h"

namespace muster::nccl_internal {

using communicator::count_of;
using communicator::offset_of;
using communicator::Operation;
using communicator::OperationCall;

int number_of(DataType type) {
  constexpr int float16 = 6;
  constexpr int float32 = 7;
  constexpr int float64 = 8;
  constexpr int bfloat16 = 9;
  constexpr int float8_e4m3 = 10;
  constexpr int float8_e5m2 = 11;
  switch (type) {
    case DataType::float16: return float16;
    case DataType::float32: return float32;
    case DataType::float64: return float64;
    case DataType::bfloat16: return bfloat16;
    case DataType::float8_e4m3: return float8_e4m3;
    case DataType::float8_e5m2: return float8_e5m2;
    default: return static_cast<int>(type);  // ncclInt8 to ncclUint64 have the same numbers
  }
}

namespace {

/// One operation as several calls in one NCCL group, each of one rank's part.
class Exchange {
 public:
  Exchange(const OperationCall& call, int reduce_op, const nccl::Functions& nccl,
           nccl::Handle handle, int own_rank, InsideCount* inside)
      : call_(call),
        reduce_op_(reduce_op),
        nccl_(nccl),
        handle_(handle),
        own_rank_(own_rank),
        inside_(inside),
        result_(nccl.group_start()) {}

  /// The part of this rank, out of `send` or into `receive` where these hold parts of all.
  enum class Buffer { of_one, of_all };

  void send(Buffer buffer, int part, int peer) {
    if (result_ != success || is_empty(part)) return;
    keep(
        nccl_.send(from(buffer, part), count_of(call_, part), type(), peer, handle_, call_.stream));
  }
  void recv(Buffer buffer, int part, int peer) {
    if (result_ != success || is_empty(part)) return;
    keep(nccl_.recv(to(buffer, part), count_of(call_, part), type(), peer, handle_, call_.stream));
  }
  /// The part of a rank, from it to all.
  void broadcast(int part) {
    if (result_ != success || is_empty(part)) return;
    char* const receive = to(Buffer::of_all, part);
    const char* const send = part == own_rank_ ? from(Buffer::of_one, part) : receive;
    keep(
        nccl_.broadcast(send, receive, count_of(call_, part), type(), part, handle_, call_.stream));
  }
  /// The part of a rank, from all to it.
  void reduce(int part) {
    if (result_ != success || is_empty(part)) return;
    keep(nccl_.reduce(from(Buffer::of_all, part), call_.receive, count_of(call_, part), type(),
                      reduce_op_, part, handle_, call_.stream));
  }
  int finish() {
    if (!is_open_) return result_;
    const Inside mark(inside_);
    const int ended = nccl_.group_end();
    return result_ != success ? result_ : ended;
  }

 private:
  int type() const { return number_of(call_.type); }
  bool is_empty(int part) const { return count_of(call_, part) == 0; }
  std::size_t bytes_before(Buffer buffer, int part) const {
    return buffer == Buffer::of_one ? 0 : offset_of(call_, part) * size_of(call_.type);
  }
  const char* from(Buffer buffer, int part) const {
    return static_cast<const char*>(call_.send) + bytes_before(buffer, part);
  }
  char* to(Buffer buffer, int part) const {
    return static_cast<char*>(call_.receive) + bytes_before(buffer, part);
  }
  void keep(int result) {
    if (result != in_progress) result_ = result;
  }

  const OperationCall& call_;
  const int reduce_op_;
  const nccl::Functions& nccl_;
  const nccl::Handle handle_;
  const int own_rank_;
  InsideCount* const inside_;
  int result_;
  const bool is_open_ = result_ == success;
};

/// Whether it is several calls: always, or because this NCCL has no function for it.
bool is_exchange(Operation operation, const nccl::Functions& nccl) {
  switch (operation) {
    case Operation::all_to_all: return nccl.all_to_all == nullptr;
    case Operation::gather: return nccl.gather == nullptr;
    case Operation::scatter: return nccl.scatter == nullptr;
    case Operation::all_gather_v:
    case Operation::reduce_scatter_v:
    case Operation::gather_v:
    case Operation::scatter_v: return true;
    default: return false;
  }
}

int exchange(const OperationCall& call, Exchange exchange, int own_rank, int world_size) {
  using Buffer = Exchange::Buffer;
  const bool is_root = own_rank == call.rank;
  const bool is_gather =
      call.operation == Operation::gather || call.operation == Operation::gather_v;
  const bool is_scatter =
      call.operation == Operation::scatter || call.operation == Operation::scatter_v;
  if (is_gather) exchange.send(Buffer::of_one, own_rank, call.rank);
  for (int rank = 0; rank < world_size; ++rank) {
    if (call.operation == Operation::all_gather_v) exchange.broadcast(rank);
    if (call.operation == Operation::reduce_scatter_v) exchange.reduce(rank);
    const bool is_to_all = call.operation == Operation::all_to_all;
    if (is_to_all || (is_scatter && is_root)) exchange.send(Buffer::of_all, rank, rank);
    if (is_to_all || (is_gather && is_root)) exchange.recv(Buffer::of_all, rank, rank);
  }
  if (is_scatter) exchange.recv(Buffer::of_one, own_rank, call.rank);
  return exchange.finish();
}

/// reduce_op  an ncclRedOp_t
int enqueue_with(int reduce_op, const OperationCall& call, const nccl::Functions& nccl,
                 nccl::Handle handle, int own_rank, int world_size, InsideCount* inside) {
  if (is_exchange(call.operation, nccl)) {
    return exchange(call, Exchange(call, reduce_op, nccl, handle, own_rank, inside), own_rank,
                    world_size);
  }
  const Inside mark(inside);
  const int type = number_of(call.type);
  const void* const send = call.send;
  void* const receive = call.receive;
  const std::size_t count = call.count;
  const int rank = call.rank;
  void* const stream = call.stream;
  switch (call.operation) {
    case Operation::all_reduce:
      return nccl.all_reduce(send, receive, count, type, reduce_op, handle, stream);
    case Operation::broadcast:
      return nccl.broadcast(send, receive, count, type, rank, handle, stream);
    case Operation::reduce:
      return nccl.reduce(send, receive, count, type, reduce_op, rank, handle, stream);
    case Operation::all_gather: return nccl.all_gather(send, receive, count, type, handle, stream);
    case Operation::reduce_scatter:
      return nccl.reduce_scatter(send, receive, count, type, reduce_op, handle, stream);
    case Operation::all_to_all: return nccl.all_to_all(send, receive, count, type, handle, stream);
    case Operation::gather: return nccl.gather(send, receive, count, type, rank, handle, stream);
    case Operation::scatter: return nccl.scatter(send, receive, count, type, rank, handle, stream);
    case Operation::send: return nccl.send(send, count, type, rank, handle, stream);
    case Operation::recv: return nccl.recv(receive, count, type, rank, handle, stream);
    default: return invalid_argument;
  }
}

}  // namespace

Enqueued enqueue(const OperationCall& call, const nccl::Functions& nccl, nccl::Handle handle,
                 int own_rank, int world_size, InsideCount* inside) {
  const char* const function = function_of(call.operation);
  const auto with = [&](int reduce_op, InsideCount* inside_it) {
    return enqueue_with(reduce_op, call, nccl, handle, own_rank, world_size, inside_it);
  };
  const auto factor = call.reduction.factor();
  if (!factor) {  // ncclSum to ncclAvg have the numbers of ReduceOp
    return {with(static_cast<int>(call.reduction.operation()), inside), function};
  }
  // In a group, so that the op goes before what may block: only an abort, which takes the handle,
  // may bring a call back from there.
  if (const int result = nccl.group_start(); result != success) return {result, "ncclGroupStart"};
  Enqueued enqueued{success, function};
  {
    const ScaledOp op(nccl, handle, call.type, *factor);
    enqueued = op.result() == success ? Enqueued{with(op.number(), nullptr), function}
                                      : Enqueued{op.result(), "ncclRedOpCreatePreMulSum"};
  }
  const Inside mark(inside);
  const int ended = nccl.group_end();
  const bool is_taken = enqueued.result == success || enqueued.result == in_progress;
  return is_taken ? Enqueued{ended, function} : enqueued;
}

const char* function_of(Operation operation) {
  switch (operation) {
    case Operation::all_reduce: return "ncclAllReduce";
    case Operation::broadcast: return "ncclBroadcast";
    case Operation::reduce: return "ncclReduce";
    case Operation::all_gather: return "ncclAllGather";
    case Operation::reduce_scatter: return "ncclReduceScatter";
    case Operation::all_to_all: return "ncclAlltoAll";
    case Operation::gather: return "ncclGather";
    case Operation::scatter: return "ncclScatter";
    case Operation::send: return "ncclSend";
    case Operation::recv: return "ncclRecv";
    case Operation::all_gather_v: return "ncclBroadcast";
    case Operation::reduce_scatter_v: return "ncclReduce";
    case Operation::gather_v:
    case Operation::scatter_v: return "ncclSend";
  }
  return "NCCL";
}

}  // namespace muster::nccl_internal
