#include <array>
#include <cstdlib>
#include <future>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "nccl/doubles/world.h"

// What NCCL does with calls that it refuses, and with groups. Each case names where its public
// source (2.28.9) shows it.

TEST_SUITE_BEGIN("nccl_doubles_group");

namespace muster::test {
namespace {

constexpr int no_such_type = 99;

/// An all-reduce of one int, the sum.
int reduce(const World& world, int rank, int& value, int type = int32_type) {
  return nccl().all_reduce(&value, &value, 1, type, 0, world[rank], world.stream(rank));
}

/// Two ranks with blocking communicators, each with a stream.
class BlockingPair {
 public:
  BlockingPair() {
    const auto id = new_id();
    const auto come = [&](int rank) {
      const CurrentDevice current(rank);
      return nccl().init_blocking(&communicators_[static_cast<std::size_t>(rank)], 2, id, rank);
    };
    auto other = std::async(std::launch::async, come, 1);
    REQUIRE(come(0) == 0);
    REQUIRE(other.get() == 0);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const CurrentDevice current(static_cast<int>(rank));
      REQUIRE(cuda().create_stream(&streams_[rank], 1) == 0);
    }
  }
  ~BlockingPair() {
    for (void* const communicator : communicators_) nccl().abort(communicator);
    for (void* const stream : streams_) {
      cuda().synchronize_stream(stream);
      cuda().destroy_stream(stream);
    }
  }
  BlockingPair(const BlockingPair&) = delete;
  BlockingPair& operator=(const BlockingPair&) = delete;

  int reduce(std::size_t rank, int& value, int type = int32_type) const {
    return nccl().all_reduce(&value, &value, 1, type, 0, communicators_[rank], streams_[rank]);
  }

  /// Both at once, since the first one connects.
  int sum() const {
    std::array<int, 2> values{1, 2};
    auto other = std::async(std::launch::async, [&] { return reduce(1, values[1]); });
    CHECK(reduce(0, values[0]) == 0);
    CHECK(other.get() == 0);
    for (void* const stream : streams_) cuda().synchronize_stream(stream);
    return values[0];
  }

  void* operator[](std::size_t rank) const { return communicators_[rank]; }

 private:
  std::array<void*, 2> communicators_{};
  std::array<void*, 2> streams_{};
};

TEST_CASE("a refusal is the error of a communicator that does not block, for good") {
  // enqueue.cc: ncclEnqueueCheck; init.cc: ncclCommEnsureReady
  const CleanDoubles clean;
  World world(2);
  world.start().connect();
  int value = 5;
  CHECK(reduce(world, 0, value, no_such_type) == 4);
  CHECK(async_error(world[0]) == 4);
  CHECK(reduce(world, 0, value) == 4);
  int count = 0;
  CHECK(nccl().rank_count(world[0], &count) == 4);
  CHECK(nccl().finalize(world[0]) == 4);
  CHECK(async_error(world[1]) == 0);
  CHECK(world.abort(0) == 0);
  CHECK(value == 5);
}

TEST_CASE("a refusal is forgotten by a communicator that blocks") {
  // enqueue.cc: ncclEnqueueCheck
  const CleanDoubles clean;
  const BlockingPair pair;
  int value = 5;
  CHECK(pair.sum() == 3);
  CHECK(pair.reduce(0, value, no_such_type) == 4);
  CHECK(async_error(pair[0]) == 0);
  CHECK(pair.sum() == 3);
}

TEST_CASE("a call while another one is in progress is an invalid argument, until that is done") {
  // init.cc: ncclCommEnsureReady; group.cc: groupLaunch
  const CleanDoubles clean;
  World world(2);
  world.start();
  std::array<int, 2> values{1, 2};
  CHECK(reduce(world, 0, values[0]) == 7);
  CHECK(reduce(world, 0, values[0]) == 4);
  CHECK(std::string(nccl().last_error(nullptr)).find("Attempt to use communicator") == 0);
  CHECK(reduce(world, 1, values[1]) == 7);
  world.synchronize();
  CHECK(begins(reduce(world, 0, values[0])));
  CHECK(begins(reduce(world, 1, values[1])));
  world.synchronize();
  CHECK(values == std::array<int, 2>{6, 6});
}

TEST_CASE(
    "the first collective of a communicator waits for all ranks, unless they connected before") {
  // init.cc: initTransportsRank; group.cc: groupLaunch, ncclCollPreconnectFunc
  const CleanDoubles clean;
  std::array<int, 2> values{1, 2};
  {
    World world(2);
    world.start();
    CHECK(reduce(world, 0, values[0]) == 7);
    let_pass(50ms);
    CHECK(async_error(world[0]) == 7);
    CHECK(cuda().query_stream(world.stream(0)) == 0);
    CHECK(reduce(world, 1, values[1]) == 7);
    CHECK(world.settled(0) == 0);
    world.synchronize();
    CHECK(begins(reduce(world, 0, values[0])));
    CHECK(world.settled(0) == 0);
    CHECK(cuda().query_stream(world.stream(0)) == 600);
  }
  ::setenv("NCCL_RUNTIME_CONNECT", "0", 1);
  World world(2);
  world.start();
  ::unsetenv("NCCL_RUNTIME_CONNECT");
  CHECK(begins(reduce(world, 0, values[0])));
  CHECK(world.settled(0) == 0);
  CHECK(cuda().query_stream(world.stream(0)) == 600);
}

TEST_CASE("the first send to a peer waits until that receives") {
  // enqueue.cc: p2pTaskAppend; group.cc: ncclP2PPreconnectFunc
  const CleanDoubles clean;
  World world(2);
  world.start().connect();
  std::array<int, 2> values{1, 2};
  CHECK(nccl().send(&values[0], 1, int32_type, 1, world[0], world.stream(0)) == 7);
  let_pass(50ms);
  CHECK(async_error(world[0]) == 7);
  CHECK(nccl().receive(&values[1], 1, int32_type, 0, world[1], world.stream(1)) == 7);
  world.synchronize();
  CHECK(values[1] == 1);
  CHECK(begins(nccl().send(&values[0], 1, int32_type, 1, world[0], world.stream(0))));
  CHECK(world.settled(0) == 0);
}

TEST_CASE(
    "a group of which one call is refused is dropped, and is the error of all that take part") {
  // group.h: ncclGroupErrCheck; group.cc: ncclGroupEndInternal, groupCleanup
  const CleanDoubles clean;
  World one(2);
  World other(2);
  one.start().connect();
  other.start().connect();
  const long before = nccl().count("collectives");
  std::array<int, 2> values{1, 2};
  REQUIRE(nccl().group_start() == 0);
  CHECK(reduce(one, 0, values[0]) == 0);
  CHECK(reduce(other, 0, values[1], no_such_type) == 4);
  CHECK(nccl().group_end() == 4);
  CHECK(async_error(one[0]) == 4);
  CHECK(async_error(other[0]) == 4);
  CHECK(begins(reduce(one, 1, values[1])));
  let_pass(50ms);
  CHECK(nccl().count("collectives") == before);
  CHECK(cuda().query_stream(one.stream(0)) == 0);
}

TEST_CASE("a group of communicators that block is dropped, and no more") {
  // group.cc: groupCleanup
  const CleanDoubles clean;
  const BlockingPair pair;
  CHECK(pair.sum() == 3);
  int value = 5;
  REQUIRE(nccl().group_start() == 0);
  CHECK(pair.reduce(0, value) == 0);
  CHECK(nccl().all_reduce(&value, &value, 1, int32_type, 0, nullptr, nullptr) == 4);
  CHECK(nccl().group_end() == 4);
  CHECK(value == 5);
  CHECK(pair.sum() == 3);
}

TEST_CASE("communicators of a group are in progress until all of them are done") {
  // group.cc: ncclGroupEndInternal, groupLaunchNonBlocking: one thread for the group
  const CleanDoubles clean;
  World one(2);
  World other(2);
  one.start();
  other.start();
  std::array<int, 4> values{1, 2, 3, 4};
  REQUIRE(nccl().group_start() == 0);
  CHECK(reduce(one, 0, values[0]) == 0);
  CHECK(reduce(other, 0, values[1]) == 0);
  CHECK(nccl().group_end() == 7);
  CHECK(reduce(one, 1, values[2]) == 7);
  let_pass(50ms);
  CHECK(async_error(one[0]) == 7);
  CHECK(async_error(other[0]) == 7);
  SUBCASE("which they are when all ranks have come") {
    CHECK(reduce(other, 1, values[3]) == 7);
    one.synchronize();
    other.synchronize();
    CHECK(values == std::array<int, 4>{4, 6, 4, 6});
  }
  SUBCASE("or when one of them is aborted") {
    // init.cc: ncclCommEnsureReady; group.cc: ncclGroupJobAbort
    CHECK(other.abort(0) == 0);
    CHECK(one.settled(0) == 3);
  }
}

TEST_CASE("communicators that block and that do not are not made in one group") {
  // group.cc: ncclAsyncLaunch
  const CleanDoubles clean;
  const CurrentDevice current(0);
  const auto config = nonblocking_config();
  const auto id = new_id();
  std::array<void*, 2> communicators{};
  REQUIRE(nccl().group_start() == 0);
  CHECK(nccl().init(&communicators[0], 2, id, 0, &config) == 0);
  CHECK(nccl().init_blocking(&communicators[1], 2, id, 1) == 4);
  CHECK(std::string(nccl().last_error(nullptr)).find("Blocking and nonblocking") == 0);
  CHECK(nccl().group_end() == 4);
  CHECK(async_error(communicators[0]) == 4);
  for (void* const communicator : communicators) CHECK(nccl().abort(communicator) == 0);
  World last(1, id);  // the id's root goes
  CHECK(last.add(0) == 7);
  CHECK(last.settled(0) == 0);
}

TEST_CASE("a collective of nothing is done at once, whoever else calls it") {
  // enqueue.cc: taskAppend
  const CleanDoubles clean;
  World world(2);
  world.start();
  int value = 1;
  CHECK(nccl().all_reduce(&value, &value, 0, int32_type, 0, world[0], world.stream(0)) == 0);
  CHECK(async_error(world[0]) == 0);
}

}  // namespace
}  // namespace muster::test
