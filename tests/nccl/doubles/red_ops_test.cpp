#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "nccl/doubles/world.h"

// Reductions that a host makes. Each case names where NCCL's public source (2.28.9) shows what it
// does.

TEST_SUITE_BEGIN("nccl_doubles_red_ops");

namespace muster::test {
namespace {

constexpr int float16_type = 6;
constexpr int on_device = 0;
constexpr int host_immediate = 1;

template <class Element>
int made(void* communicator, int type, Element factor) {
  int op = -1;
  REQUIRE(nccl().create_red_op(&op, &factor, type, host_immediate, communicator) == 0);
  CHECK(op > 4);
  return op;
}

/// What all ranks get of 2, 3 and 4, multiplied by these.
template <class Element>
Element scaled(const World& world, int type, std::array<Element, 3> elements,
               const std::array<Element, 3>& factors) {
  for (int rank = 0; rank < 3; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    const int op = made(world[rank], type, factors[index]);
    REQUIRE(begins(nccl().all_reduce(&elements[index], &elements[index], 1, type, op, world[rank],
                                     world.stream(rank))));
    REQUIRE(nccl().destroy_red_op(op, world[rank]) == 0);
  }
  world.synchronize();
  CHECK(elements[0] == elements[1]);
  CHECK(elements[2] == elements[1]);
  return elements[0];
}

TEST_CASE("elements are multiplied by the rank's factor, in their type, and added up") {
  // reduce_kernel.h: FuncPreMulSum, Apply_PreOp
  const CleanDoubles clean;
  World world(3);
  world.start().connect();
  CHECK(scaled<float>(world, float32_type, {2, 3, 4}, {0.5F, -1, 0.25F}) == -1);
  CHECK(scaled<double>(world, 8, {2, 3, 4}, {0.5, -1, 0.25}) == -1);
  CHECK(scaled<std::int32_t>(world, int32_type, {2, 3, 4}, {5, -1, 2}) == 15);
  CHECK(scaled<std::uint8_t>(world, 1, {2, 3, 4}, {128, 1, 1}) == 7);  // wraps around
  using Half = std::uint16_t;
  CHECK(scaled<Half>(world, float16_type, {0x4200, 0, 0}, {0x2e66, 0, 0}) == 0x34cc);  // 3 * 0.1
  CHECK(scaled<Half>(world, 9, {0x4000, 0x4040, 0}, {0x3f00, 0x3f80, 0}) == 0x4080);   // 1 + 3
  CHECK(scaled<std::uint8_t>(world, 10, {0x7e, 0, 0}, {0x40, 0, 0}) == 0x7e);
  CHECK(scaled<std::uint8_t>(world, 11, {0x3c, 0x3c, 0}, {0x38, 0x3c, 0}) == 0x3e);  // 1.5
}

TEST_CASE("an op may be destroyed before the group ends, and its place taken by another") {
  // enqueue.cc: taskAppend
  const CleanDoubles clean;
  World world(2);
  world.start().connect();
  std::array<std::array<float, 2>, 2> values{{{1, 1}, {2, 2}}};
  for (int rank = 0; rank < 2; ++rank) {
    REQUIRE(nccl().group_start() == 0);
    int last = -1;
    for (std::size_t call = 0; call < 2; ++call) {
      float& value = values[static_cast<std::size_t>(rank)][call];
      const int op = made(world[rank], float32_type, call == 0 ? 2.0F : 0.5F);
      if (call == 1) CHECK(op == last);
      last = op;
      REQUIRE(begins(
          nccl().all_reduce(&value, &value, 1, float32_type, op, world[rank], world.stream(rank))));
      REQUIRE(nccl().destroy_red_op(op, world[rank]) == 0);
    }
    REQUIRE(begins(nccl().group_end()));
  }
  world.synchronize();
  CHECK(values[1] == std::array<float, 2>{6, 1.5F});
}

TEST_CASE("there may be many ops, each with a number of its own") {
  // enqueue.cc: ncclRedOpCreatePreMulSum
  const CleanDoubles clean;
  World world(1);
  world.start();
  std::vector<int> ops;
  for (int number = 0; number < 100; ++number) {
    const int op = made(world[0], float32_type, static_cast<float>(number));
    for (const int other : ops) CHECK(op != other);
    ops.push_back(op);
  }
  float value = 1;
  REQUIRE(begins(
      nccl().all_reduce(&value, &value, 1, float32_type, ops[70], world[0], world.stream(0))));
  world.synchronize();
  CHECK(value == 70);
  for (const int op : ops) CHECK(nccl().destroy_red_op(op, world[0]) == 0);
}

TEST_CASE("an op is known to its communicator alone, until it is destroyed, for its type") {
  // argcheck.cc: ArgsCheck; enqueue.cc: hostToDevRedOp
  const CleanDoubles clean;
  for (const char* const wrong : {"another's", "destroyed", "of another type"}) {
    CAPTURE(wrong);
    World own(1);
    World other(1);
    own.start();
    other.start();
    float value = 1;
    const std::string what = wrong;
    const int op = made(what == "another's" ? other[0] : own[0],
                        what == "of another type" ? float16_type : float32_type, 2.0F);
    if (what == "destroyed") REQUIRE(nccl().destroy_red_op(op, own[0]) == 0);
    CHECK(nccl().all_reduce(&value, &value, 1, float32_type, op, own[0], own.stream(0)) == 4);
    CHECK(async_error(own[0]) == 4);  // as of any call that is refused
    own.synchronize();
    CHECK(value == 1);
    if (what == "another's") REQUIRE(nccl().destroy_red_op(op, other[0]) == 0);
    if (what == "of another type") REQUIRE(nccl().destroy_red_op(op, own[0]) == 0);
  }
}

TEST_CASE("what is none, or not this communicator's, is not destroyed") {
  // enqueue.cc: ncclRedOpDestroy
  const CleanDoubles clean;
  World own(1);
  World other(1);
  own.start();
  other.start();
  const int op = made(own[0], float32_type, 2.0F);
  for (int built_in = 0; built_in < 5; ++built_in) {
    CHECK(nccl().destroy_red_op(built_in, own[0]) == 4);
  }
  CHECK(nccl().destroy_red_op(-1, own[0]) == 4);
  CHECK(nccl().destroy_red_op(op, nullptr) == 4);
  CHECK(nccl().destroy_red_op(op, other[0]) == 4);
  CHECK(nccl().destroy_red_op(op, own[0]) == 0);
  CHECK(nccl().destroy_red_op(op, own[0]) == 4);
  CHECK(async_error(own[0]) == 0);  // it keeps none of these
}

TEST_CASE("a creation that is refused is kept by neither the communicator nor a group") {
  // enqueue.cc: ncclRedOpCreatePreMulSum; init.cc: ncclCommEnsureReady
  const CleanDoubles clean;
  World world(2);
  REQUIRE(world.add(0) == 7);
  float factor = 2;
  int op = -1;
  const auto create = [&](void* communicator, int type = float32_type) {
    return nccl().create_red_op(&op, &factor, type, host_immediate, communicator);
  };
  CHECK(create(nullptr) == 4);
  CHECK(create(world[0]) == 4);  // in progress
  REQUIRE(world.add(1) == 7);
  REQUIRE(world.settled(0) == 0);
  REQUIRE(world.settled(1) == 0);
  CHECK(create(world[0], 99) == 3);
  CHECK(op == -1);
  std::array<float, 2> values{1, 2};
  for (int rank = 0; rank < 2; ++rank) {
    float& value = values[static_cast<std::size_t>(rank)];
    REQUIRE(nccl().group_start() == 0);
    REQUIRE(nccl().fault("red_op:result=4*1") == 0);
    CHECK(create(world[rank]) == 4);
    CHECK(begins(
        nccl().all_reduce(&value, &value, 1, float32_type, 0, world[rank], world.stream(rank))));
    CHECK(begins(nccl().group_end()));
  }
  world.synchronize();
  CHECK(values == std::array<float, 2>{3, 3});
}

TEST_CASE("a factor in device memory is read when the operation runs") {
  // reduce_kernel.h: RedOpArg<FuncPreMulSum>
  const CleanDoubles clean;
  World world(2);
  world.start().connect();
  std::array<float, 2> values{1, 2};
  float factor = 2;
  for (int rank = 0; rank < 2; ++rank) {
    float& value = values[static_cast<std::size_t>(rank)];
    int op = -1;
    REQUIRE(nccl().create_red_op(&op, &factor, float32_type, on_device, world[rank]) == 0);
    REQUIRE(nccl().group_start() == 0);
    REQUIRE(begins(
        nccl().all_reduce(&value, &value, 1, float32_type, op, world[rank], world.stream(rank))));
    REQUIRE(nccl().destroy_red_op(op, world[rank]) == 0);
    if (rank == 0) factor = 3;
    REQUIRE(begins(nccl().group_end()));
  }
  world.synchronize();
  CHECK(values == std::array<float, 2>{9, 9});
}

}  // namespace
}  // namespace muster::test
