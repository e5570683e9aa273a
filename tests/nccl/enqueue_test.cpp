#include "nccl/enqueue.h"

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "nccl/functions.h"

// Which function of NCCL an operation goes to, and with which arguments.

namespace muster::nccl_internal {
namespace {

using communicator::Operation;
using communicator::OperationCall;
using Lines = std::vector<std::string>;

char from[64];
char to[64];
char stream_memory;
char handle_memory;
nccl::Handle const own_handle = &handle_memory;
void* const own_stream = &stream_memory;

Lines lines;
std::string refused_by;
int create_result = success;
int all_reduce_result = in_progress;
int send_result = success;
int group_end_result = success;

std::string number(long long value) { return " " + std::to_string(value); }

int note(const std::string& line, nccl::Handle handle, nccl::CudaStream stream) {
  CHECK(handle == own_handle);
  CHECK(stream == own_stream);
  lines.push_back(line);
  return in_progress;
}

std::string at(const void* send, const void* receive) {
  std::string text;
  if (send != nullptr) text += " from" + number(static_cast<const char*>(send) - from);
  if (receive != nullptr) text += " to" + number(static_cast<const char*>(receive) - to);
  return text;
}

nccl::Functions fakes() {
  nccl::Functions f;
  f.group_start = [] {
    lines.emplace_back("start");
    return success;
  };
  f.group_end = [] {
    lines.emplace_back("end");
    return group_end_result;
  };
  f.all_reduce = [](const void* send, void* receive, std::size_t count, int type, int operation,
                    nccl::Handle handle, nccl::CudaStream stream) {
    note("all_reduce" + at(send, receive) + number(static_cast<long long>(count)) + number(type) +
             number(operation),
         handle, stream);
    return all_reduce_result;
  };
  f.red_op_create_pre_mul_sum = [](int* operation, void* factor, int type, int residence,
                                   nccl::Handle handle) {
    CHECK(residence == 1);  // ncclScalarHostImmediate
    std::string hex;
    for (std::size_t index = 0; index < size_of(static_cast<DataType>(type)); ++index) {
      constexpr const char* digits = "0123456789abcdef";
      const auto byte = static_cast<unsigned char*>(factor)[index];
      hex = std::string{digits[byte / 16], digits[byte % 16]} + hex;
    }
    *operation = 77;
    note("create" + number(type) + " " + hex, handle, own_stream);
    return create_result;
  };
  f.red_op_destroy = [](int operation, nccl::Handle handle) {
    note("destroy" + number(operation), handle, own_stream);
    return success;
  };
  f.reduce = [](const void* send, void* receive, std::size_t count, int type, int operation,
                int root, nccl::Handle handle, nccl::CudaStream stream) {
    return note("reduce" + at(send, receive) + number(static_cast<long long>(count)) +
                    number(type) + number(operation) + number(root),
                handle, stream);
  };
  f.broadcast = [](const void* send, void* receive, std::size_t count, int type, int root,
                   nccl::Handle handle, nccl::CudaStream stream) {
    return note("broadcast" + at(send, receive) + number(static_cast<long long>(count)) +
                    number(type) + number(root),
                handle, stream);
  };
  f.send = [](const void* buffer, std::size_t count, int type, int peer, nccl::Handle handle,
              nccl::CudaStream stream) {
    note("send" + at(buffer, nullptr) + number(static_cast<long long>(count)) + number(type) +
             number(peer),
         handle, stream);
    return send_result;
  };
  f.recv = [](void* buffer, std::size_t count, int type, int peer, nccl::Handle handle,
              nccl::CudaStream stream) {
    return note("recv" + at(nullptr, buffer) + number(static_cast<long long>(count)) +
                    number(type) + number(peer),
                handle, stream);
  };
  return f;
}

/// What is called for it, and last the result.
Lines issued(Operation operation, int own_rank, DataType type = DataType::int32,
             Reduction reduction = ReduceOp::max) {
  OperationCall call{operation};
  call.send = from;
  call.receive = to;
  call.count = 2;
  call.type = type;
  call.reduction = reduction;
  call.rank = 1;
  call.stream = own_stream;
  const std::vector<std::size_t> counts{1, 0, 2};
  if (operation == Operation::reduce_scatter_v) call.counts = counts;
  lines.clear();
  const Enqueued enqueued = enqueue(call, fakes(), own_handle, own_rank, 3);
  lines.push_back(std::to_string(enqueued.result));
  refused_by = enqueued.function;
  return lines;
}

TEST_CASE("an operation goes to its function with NCCL's numbers") {
  CHECK(issued(Operation::all_reduce, 0) == Lines{"all_reduce from 0 to 0 2 2 2", "7"});
  CHECK(issued(Operation::reduce, 0) == Lines{"reduce from 0 to 0 2 2 2 1", "7"});
  CHECK(issued(Operation::broadcast, 0) == Lines{"broadcast from 0 to 0 2 2 1", "7"});
  CHECK(issued(Operation::recv, 0) == Lines{"recv to 0 2 2 1", "7"});
  // ncclFloat16, ncclFloat32, ncclFloat64, ncclBfloat16, ncclFloat8e4m3, ncclFloat8e5m2
  const std::vector<std::pair<DataType, std::string>> floats = {
      {DataType::float16, "6"},  {DataType::float32, "7"},      {DataType::float64, "8"},
      {DataType::bfloat16, "9"}, {DataType::float8_e4m3, "10"}, {DataType::float8_e5m2, "11"}};
  for (const auto& [type, of_nccl] : floats) {
    CHECK(issued(Operation::recv, 0, type).front() == "recv to 0 2 " + of_nccl + " 1");
  }
}

TEST_CASE("a scaled sum has an op of its own, which goes before the group ends") {
  const auto scaled = [](Operation operation, DataType type = DataType::float32) {
    return issued(operation, 1, type, scaled_sum(0.1));
  };
  CHECK(scaled(Operation::all_reduce) == Lines{"start", "create 7 3dcccccd",
                                               "all_reduce from 0 to 0 2 7 77", "destroy 77", "end",
                                               "0"});
  CHECK(scaled(Operation::reduce_scatter_v) ==
        Lines{"start", "create 7 3dcccccd", "start", "reduce from 0 to 0 1 7 77 0",
              "reduce from 4 to 0 2 7 77 2", "end", "destroy 77", "end", "0"});
  const std::vector<std::pair<DataType, std::string>> elements = {
      {DataType::float16, "create 6 2e66"},
      {DataType::float64, "create 8 3fb999999999999a"},
      {DataType::bfloat16, "create 9 3dcd"},
      {DataType::float8_e4m3, "create 10 1d"},
      {DataType::float8_e5m2, "create 11 2e"}};
  for (const auto& [type, created] : elements) {
    CHECK(scaled(Operation::all_reduce, type).at(1) == created);
  }
}

TEST_CASE("an op that is refused is not used, and one that was made goes with a call that fails") {
  create_result = 4;
  CHECK(issued(Operation::all_reduce, 0, DataType::float16, scaled_sum(1)) ==
        Lines{"start", "create 6 3c00", "end", "4"});
  CHECK(refused_by == "ncclRedOpCreatePreMulSum");
  create_result = success;
  all_reduce_result = 5;
  CHECK(issued(Operation::all_reduce, 0, DataType::float16, scaled_sum(1)) ==
        Lines{"start", "create 6 3c00", "all_reduce from 0 to 0 2 6 77", "destroy 77", "end", "5"});
  CHECK(refused_by == "ncclAllReduce");
  all_reduce_result = in_progress;
  group_end_result = in_progress;
  CHECK(issued(Operation::all_reduce, 0, DataType::float16, scaled_sum(1)).back() == "7");
  group_end_result = success;
}

TEST_CASE("what this NCCL does not have is sends and receives of one group") {
  CHECK(issued(Operation::all_to_all, 0) ==
        Lines{"start", "send from 0 2 2 0", "recv to 0 2 2 0", "send from 8 2 2 1",
              "recv to 8 2 2 1", "send from 16 2 2 2", "recv to 16 2 2 2", "end", "0"});
  CHECK(issued(Operation::gather, 0) == Lines{"start", "send from 0 2 2 1", "end", "0"});
  CHECK(issued(Operation::gather, 1) == Lines{"start", "send from 0 2 2 1", "recv to 0 2 2 0",
                                              "recv to 8 2 2 1", "recv to 16 2 2 2", "end", "0"});
  CHECK(issued(Operation::scatter, 0) == Lines{"start", "recv to 0 2 2 1", "end", "0"});
  CHECK(issued(Operation::scatter, 1) == Lines{"start", "send from 0 2 2 0", "send from 8 2 2 1",
                                               "send from 16 2 2 2", "recv to 0 2 2 1", "end",
                                               "0"});
}

TEST_CASE("a group that fails is ended, and its first failure is the result") {
  group_end_result = 3;
  CHECK(issued(Operation::gather, 0).back() == "3");
  send_result = 5;
  CHECK(issued(Operation::scatter, 1) == Lines{"start", "send from 0 2 2 0", "end", "5"});
  send_result = success;
  group_end_result = success;
}

}  // namespace
}  // namespace muster::nccl_internal
