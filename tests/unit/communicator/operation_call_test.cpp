#include "communicator/operation_call.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

// What every kind of communicator refuses, before NCCL or Gloo is called.

namespace muster::communicator {
namespace {

constexpr int this_rank = 1;
constexpr int rank_count = 4;

char memory[2];

OperationCall call_of(Operation operation) {
  OperationCall call{operation};
  call.send = &memory[0];
  call.receive = &memory[1];
  call.count = 8;
  call.rank = this_rank;
  return call;
}

std::string refused(const OperationCall& call, int ranks = rank_count) {
  const auto error = refusal_of(call, this_rank, ranks);
  if (!error) return "";
  CHECK(error->code == ErrorCode::invalid_argument);
  return error->detail.substr(0, error->detail.find(':'));
}

/// Whether it may be null: at the root, and at another rank.
struct Needs {
  Operation operation;
  const char* name;
  bool send_at_root;
  bool send_elsewhere;
  bool receive_at_root;
  bool receive_elsewhere;
};

TEST_CASE("each operation needs exactly the buffers that it uses on this rank") {
  const std::vector<Needs> all = {
      {Operation::all_reduce, "all_reduce", true, true, true, true},
      {Operation::broadcast, "broadcast", true, false, true, true},
      {Operation::reduce, "reduce", true, true, true, false},
      {Operation::all_gather, "all_gather", true, true, true, true},
      {Operation::reduce_scatter, "reduce_scatter", true, true, true, true},
      {Operation::all_to_all, "all_to_all", true, true, true, true},
      {Operation::gather, "gather", true, true, true, false},
      {Operation::scatter, "scatter", true, false, true, true},
      {Operation::send, "send", true, true, false, false},
      {Operation::recv, "recv", false, false, true, true},
  };
  for (const Needs& needs : all) {
    CAPTURE(needs.name);
    CHECK(name_of(needs.operation) == needs.name);
    for (const int root : {this_rank, 0}) {
      CAPTURE(root);
      OperationCall call = call_of(needs.operation);
      call.rank = root;
      CHECK(refused(call) == "");
      OperationCall without_send = call;
      without_send.send = nullptr;
      const bool is_root = root == this_rank;
      CHECK((refused(without_send) == "send") ==
            (is_root ? needs.send_at_root : needs.send_elsewhere));
      OperationCall without_receive = call;
      without_receive.receive = nullptr;
      CHECK((refused(without_receive) == "receive") ==
            (is_root ? needs.receive_at_root : needs.receive_elsewhere));
      without_send.receive = nullptr;
      without_send.count = 0;
      CHECK(refused(without_send) == "");
    }
  }
}

TEST_CASE("types, operations and ranks beyond the last one are refused") {
  OperationCall call = call_of(Operation::all_reduce);
  call.type = static_cast<DataType>(12);
  CHECK(refused(call) == "type");
  call = call_of(Operation::all_reduce);
  for (const ReduceOp operation : {ReduceOp::bit_and, ReduceOp::bit_or, ReduceOp::bit_xor,
                                   static_cast<ReduceOp>(8), static_cast<ReduceOp>(255)}) {
    call.reduction = operation;
    CHECK(refused(call) == "reduction");
  }
  call = call_of(Operation::broadcast);
  call.rank = rank_count;
  CHECK(refused(call) == "rank 4");
  call.rank = -1;
  CHECK(refused(call) == "rank -1");
  call.rank = rank_count - 1;
  CHECK(refused(call) == "");
}

TEST_CASE("a scaled sum is refused of integers, and of no other type") {
  for (int type = 0; type <= static_cast<int>(DataType::float8_e5m2); ++type) {
    OperationCall call = call_of(Operation::all_reduce);
    call.type = static_cast<DataType>(type);
    CAPTURE(type);
    CHECK(refused(call) == "");
    call.reduction = scaled_sum(0.5);
    CHECK(refused(call) == (call.type < DataType::float16 ? "type" : ""));
  }
}

TEST_CASE("a count is refused if the larger buffer is larger than any memory") {
  constexpr std::size_t bytes_max = std::numeric_limits<std::ptrdiff_t>::max();
  OperationCall call = call_of(Operation::all_reduce);
  call.type = DataType::float64;
  call.count = bytes_max / 8;
  CHECK(refused(call) == "");
  call.count += 1;
  CHECK(refused(call) == "count");
  call = call_of(Operation::all_gather);
  call.count = bytes_max / rank_count;
  CHECK(refused(call) == "");
  call.count += 1;
  CHECK(refused(call) == "count");
}

TEST_CASE("all_to_all needs two buffers, unless a rank is alone") {
  OperationCall call = call_of(Operation::all_to_all);
  call.receive = &memory[0];
  CHECK(refused(call) == "send and receive");
  call.rank = 0;
  CHECK(refused(call, 1) == "");
  call = call_of(Operation::all_gather);
  call.receive = &memory[0];
  CHECK(refused(call) == "");
}

}  // namespace
}  // namespace muster::communicator
