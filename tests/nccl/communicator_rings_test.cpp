#include <cstdint>
#include <future>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "nccl/communicator_machine.h"
#include "support/scale.h"

// Groups that overlap: a rank is in several, each with a communicator on its one device.

namespace muster::test {
namespace {

/// All ranks have come here before one goes on; unlike a barrier of overlapping groups.
void meet(Store& store, const std::string& place, int count) {
  if (must(store.add(place, 1)) == count) must(store.set(place + " all", ""));
  must(store.get(place + " all"));
}

/// One rank of a ring in which each shares a group with the next one and one with the last one.
/// All begin with the group that is their own, so one after the other would never end.
void make_pairs(Store& store, int rank, int size, int turn) {
  const auto name_of = [&](int owner) {
    return "pair " + std::to_string(owner) + " turn " + std::to_string(turn);
  };
  const int last = (rank + size - 1) % size;
  auto joining = std::async(std::launch::async, [&] { return join(store, name_of(last), 1, 2); });
  auto own = join(store, name_of(rank), 0, 2);
  auto other = joining.get();
  nccl::Options options = doubled();
  options.warm_up = true;
  options.mode = turn % 2 == 1 ? nccl::Mode::blocking : nccl::Mode::nonblocking;
  nccl::Communicators communicators;
  const std::vector<nccl::Request> requests{{&own, rank, options}, {&other, rank, options}};
  for (const auto& made : communicators.create_all(requests)) must(made);
  CHECK(communicators.count() == 2);
  const auto with_next = communicators.find(own);
  const auto with_last = communicators.find(other);
  REQUIRE(with_next);
  REQUIRE(with_last);
  CHECK(with_next->group() == own.name());
  const auto value_of = [&](int of) { return (of + size) % size + turn; };
  Buffer of_next(rank, 1);
  Buffer of_last(rank, 1);
  of_next.fill({value_of(rank)});
  of_last.fill({value_of(rank)});
  must(reduce(*with_next, of_next));
  must(reduce(*with_last, of_last));
  CHECK(of_next.values().front() == value_of(rank) + value_of(rank + 1));
  CHECK(of_last.values().front() == value_of(rank) + value_of(rank - 1));
  meet(store, "turn " + std::to_string(turn), size);
}

TEST_CASE_FIXTURE(Machine, "rings of groups that overlap are made again and again") {
  auto server = start_server();
  for (const int size : {3, 4}) {
    run_ranks(size, [&](int rank) {
      StoreOptions options;
      options.name_space = "ring of " + std::to_string(size);
      auto store = connect(server, options);
      for (int turn = 0; turn < scaled(100); ++turn) make_pairs(store, rank, size, turn);
    });
  }
  CHECK(nccl::failed_attempts() == 0);
}

TEST_CASE_FIXTURE(Machine, "first collectives on one device do not wait for each other's turn") {
  // Each rank is ready for another one of the two groups first: it is rank 0 there.
  for (const nccl::Mode mode : {nccl::Mode::nonblocking, nccl::Mode::blocking}) {
    CAPTURE(static_cast<int>(mode));
    REQUIRE(nccl().fault("ready:delay=200@1") == 0);
    auto server = start_server();
    run_ranks(2, [&](int rank) {
      auto store = connect(server);
      auto joining = std::async(std::launch::async, [&] { return join(store, "a", rank, 2); });
      auto other = join(store, "b", 1 - rank, 2);
      auto one = joining.get();
      nccl::Options options = doubled(5s);
      options.warm_up = true;
      options.mode = mode;
      nccl::Communicators communicators;
      const std::vector<nccl::Request> requests{{&one, rank, options}, {&other, rank, options}};
      for (const auto& made : communicators.create_all(requests)) must(made);
      meet(store, "all have both", 2);
    });
    nccl().clear_faults();
  }
}

TEST_CASE_FIXTURE(Machine,
                  "without a warm-up a ring waits in its first collectives until their deadline") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    auto store = connect(server);
    const auto name_of = [](int owner) { return "pair " + std::to_string(owner); };
    const int last = (rank + 2) % 3;
    auto joining = std::async(std::launch::async, [&] { return join(store, name_of(last), 1, 2); });
    auto own = join(store, name_of(rank), 0, 2);
    auto other = joining.get();
    nccl::Communicators communicators;
    const std::vector<nccl::Request> requests{{&own, rank, doubled()}, {&other, rank, doubled()}};
    for (const auto& made : communicators.create_all(requests)) must(made);
    Buffer buffer(rank, 1);
    const auto reduced = reduce(*communicators.find(own), buffer, 500ms);
    CHECK(must_fail(reduced).code == ErrorCode::timed_out);
    meet(store, "all have waited", 3);
  });
}

TEST_CASE_FIXTURE(Machine, "a group within another reduces what that has reduced") {
  auto server = start_server();
  run_ranks(4, [&](int rank) {
    auto store = connect(server);
    auto world = join(store, "world", rank, 4);
    auto of_all = must(nccl::create(world, rank, doubled()));
    Buffer buffer(rank, 1);
    buffer.fill({rank});
    must(reduce(of_all, buffer));
    if (rank < 3) {
      auto inner = join(store, "inner", rank, 3);
      auto of_inner = must(nccl::create(inner, rank, doubled()));
      must(reduce(of_inner, buffer));  // behind the first one on the stream
      CHECK(buffer.values().front() == 18);
      must(inner.barrier());
    }
    CHECK(buffer.values().front() == (rank < 3 ? 18 : 6));
    must(world.barrier());
  });
}

}  // namespace
}  // namespace muster::test
