#include "nccl/enqueue.h"

#include <cstddef>

#include "nccl/functions.h"

namespace muster::nccl_internal {

using communicator::Operation;
using communicator::OperationCall;

namespace {

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

int number_of(ReduceOp operation) { return static_cast<int>(operation); }

/// One operation as sends and receives in one NCCL group.
class Exchange {
 public:
  Exchange(const OperationCall& call, const nccl::Functions& nccl, nccl::Handle handle,
           InsideCount* inside)
      : call_(call), nccl_(nccl), handle_(handle), inside_(inside), result_(nccl.group_start()) {}

  /// The part of `send` with this number, or all of it.
  void send(int part, int peer) {
    if (result_ != success) return;
    const char* const from = static_cast<const char*>(call_.send) + offset_of(part);
    keep(nccl_.send(from, call_.count, number_of(call_.type), peer, handle_, call_.stream));
  }
  void recv(int part, int peer) {
    if (result_ != success) return;
    char* const to = static_cast<char*>(call_.receive) + offset_of(part);
    keep(nccl_.recv(to, call_.count, number_of(call_.type), peer, handle_, call_.stream));
  }
  int finish() {
    if (!is_open_) return result_;
    const Inside mark(inside_);
    const int ended = nccl_.group_end();
    return result_ != success ? result_ : ended;
  }

 private:
  std::size_t offset_of(int part) const {
    return static_cast<std::size_t>(part) * call_.count * size_of(call_.type);
  }
  void keep(int result) {
    if (result != in_progress) result_ = result;
  }

  const OperationCall& call_;
  const nccl::Functions& nccl_;
  const nccl::Handle handle_;
  InsideCount* const inside_;
  int result_;
  const bool is_open_ = result_ == success;
};

int exchange_all_to_all(Exchange& exchange, int world_size) {
  for (int peer = 0; peer < world_size; ++peer) {
    exchange.send(peer, peer);
    exchange.recv(peer, peer);
  }
  return exchange.finish();
}

int exchange_gather(Exchange& exchange, int root, int own_rank, int world_size) {
  exchange.send(0, root);
  for (int peer = 0; own_rank == root && peer < world_size; ++peer) exchange.recv(peer, peer);
  return exchange.finish();
}

int exchange_scatter(Exchange& exchange, int root, int own_rank, int world_size) {
  for (int peer = 0; own_rank == root && peer < world_size; ++peer) exchange.send(peer, peer);
  exchange.recv(0, root);
  return exchange.finish();
}

/// Whether this NCCL has no function for it.
bool is_exchange(Operation operation, const nccl::Functions& nccl) {
  switch (operation) {
    case Operation::all_to_all: return nccl.all_to_all == nullptr;
    case Operation::gather: return nccl.gather == nullptr;
    case Operation::scatter: return nccl.scatter == nullptr;
    default: return false;
  }
}

int exchange(const OperationCall& call, Exchange exchange, int own_rank, int world_size) {
  switch (call.operation) {
    case Operation::all_to_all: return exchange_all_to_all(exchange, world_size);
    case Operation::gather: return exchange_gather(exchange, call.rank, own_rank, world_size);
    default: return exchange_scatter(exchange, call.rank, own_rank, world_size);
  }
}

}  // namespace

int enqueue(const OperationCall& call, const nccl::Functions& nccl, nccl::Handle handle,
            int own_rank, int world_size, InsideCount* inside) {
  if (is_exchange(call.operation, nccl)) {
    return exchange(call, Exchange(call, nccl, handle, inside), own_rank, world_size);
  }
  const Inside mark(inside);
  const int type = number_of(call.type);
  const int reduce_op = number_of(call.reduce_op);
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
  }
  return invalid_argument;
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
  }
  return "NCCL";
}

}  // namespace muster::nccl_internal
