#include <doctest/doctest.h>

#include "nccl/doubles/world.h"

TEST_SUITE_BEGIN("nccl_doubles_derive");

namespace muster::test {
namespace {

constexpr int no_color = -1;
constexpr int shrink_abort = 1;

/// What another thread has put there.
void* read(void*& handle) { return std::atomic_ref(handle).load(); }

void await_ready(const std::vector<void*>& communicators) {
  for (void* const communicator : communicators) {
    await([&] { return async_error(communicator) == 0; });
  }
}

/// The sum over a communicator of which these are the ranks, each with its index as its value.
int sum_over(const std::vector<void*>& communicators, const World& world) {
  std::vector<int> values;
  for (std::size_t i = 0; i < communicators.size(); ++i) values.push_back(static_cast<int>(i) + 1);
  for (std::size_t i = 0; i < communicators.size(); ++i) {
    REQUIRE(begins(nccl().all_reduce(&values[i], &values[i], 1, int32_type, 0, communicators[i],
                                     world.stream(static_cast<int>(i)))));
  }
  await_ready(communicators);
  world.synchronize();
  return values.front();
}

TEST_CASE("a split gives those of one color a communicator, in the order of their keys") {
  const CleanDoubles clean;
  World world(3);
  world.start();
  const auto config = nonblocking_config();
  std::vector<void*> children(3);
  for (int rank = 0; rank < 3; ++rank) {
    const int color = rank == 1 ? no_color : 4;
    CHECK(nccl().split(world[rank], color, -rank, &children[static_cast<std::size_t>(rank)],
                       &config) == 7);
  }
  for (int rank = 0; rank < 3; ++rank) CHECK(world.settled(rank) == 0);
  CHECK(children[1] == nullptr);
  await_ready({children[0], children[2]});
  int number = -1;
  CHECK(nccl().rank(children[0], &number) == 0);
  CHECK(number == 1);
  CHECK(sum_over({children[2], children[0]}, world) == 3);
  CHECK(sum_over({world[0], world[1], world[2]}, world) == 6);
  CHECK(nccl().destroy(children[0]) == 0);
  CHECK(nccl().destroy(children[2]) == 0);
}

TEST_CASE("a split that one rank does not join goes on; its children come with the abort") {
  const CleanDoubles clean;
  World world(3);
  world.start();
  const auto config = nonblocking_config();
  std::vector<void*> children(2);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(nccl().split(world[static_cast<int>(rank)], 0, 0, &children[rank], &config) == 7);
  }
  let_pass(50ms);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(async_error(world[static_cast<int>(rank)]) == 7);
    CHECK(read(children[rank]) == nullptr);
  }
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(world.abort(static_cast<int>(rank)) == 0);
    REQUIRE(read(children[rank]) != nullptr);
    CHECK(async_error(children[rank]) != 0);
    CHECK(nccl().abort(children[rank]) == 0);
  }
}

TEST_CASE("a shrink leaves out the rank that is gone, although an operation is stuck") {
  const CleanDoubles clean;
  World world(3);
  world.start().connect();
  const auto config = nonblocking_config();
  std::vector<int> values{1, 2};
  for (int rank = 0; rank < 2; ++rank) {
    int& value = values[static_cast<std::size_t>(rank)];
    REQUIRE(begins(
        nccl().all_reduce(&value, &value, 1, int32_type, 0, world[rank], world.stream(rank))));
  }
  CHECK(world.abort(2) == 0);
  for (int rank = 0; rank < 2; ++rank) world.settled(rank);
  std::vector<void*> children(2);
  const int gone = 2;
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(nccl().shrink(world[rank], &gone, 1, &children[static_cast<std::size_t>(rank)], &config,
                        shrink_abort) == 7);
  }
  for (int rank = 0; rank < 2; ++rank) CHECK(world.settled(rank) == 0);
  await_ready(children);
  CHECK(sum_over(children, world) == 3);
  for (void* const child : children) CHECK(nccl().destroy(child) == 0);
}

TEST_CASE("a revoked communicator can be split, but does no collectives") {
  const CleanDoubles clean;
  World world(2);
  world.start().connect();
  int value = 1;
  const auto reduce = [&] {
    return nccl().all_reduce(&value, &value, 1, int32_type, 0, world[0], world.stream(0));
  };
  CHECK(begins(reduce()));
  CHECK(world.settled(0) == 0);
  await([] { return cuda().alive("queued") == 1; });
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(begins(nccl().revoke(world[rank], 0)));
    CHECK(world.settled(rank) == 0);
  }
  CHECK(cuda().synchronize_stream(world.stream(0)) == 0);
  CHECK(reduce() == 5);
  CHECK(std::string(nccl().last_error(nullptr)) == "communicator was revoked");
  const auto config = nonblocking_config();
  std::vector<void*> children(2);
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(nccl().split(world[rank], 0, 0, &children[static_cast<std::size_t>(rank)], &config) == 7);
  }
  for (int rank = 0; rank < 2; ++rank) CHECK(world.settled(rank) == 0);
  await_ready(children);
  CHECK(sum_over(children, world) == 3);
  for (void* const child : children) CHECK(nccl().destroy(child) == 0);
}

}  // namespace
}  // namespace muster::test
