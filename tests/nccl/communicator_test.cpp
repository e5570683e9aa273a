#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "muster/inspect.h"
#include "muster/interruptible.h"
#include "muster/nccl.h"
#include "nccl/communicator_machine.h"
#include "support/ranks.h"

// Communicators of ranks that are threads, each with a device of its own.

namespace muster::test {
namespace {

TEST_CASE_FIXTURE(Machine, "all ranks get a communicator and reduce over it") {
  auto server = start_server();
  run_ranks(4, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 4);
    auto communicator = must(nccl::create(group, rank, doubled()));
    CHECK(communicator.rank() == rank);
    CHECK(communicator.world_size() == 4);
    CHECK(must(nccl::device(communicator)) == rank);
    CHECK(communicator.group() == "g");
    CHECK(communicator.epoch() == group.epoch());
    CHECK_FALSE(communicator.error());
    Buffer buffer(rank, 1);
    buffer.fill({rank + 1});
    must(communicator.all_reduce(buffer.at(), buffer.at(), 1, DataType::int32, ReduceOp::sum,
                                 buffer.stream()));
    CHECK(buffer.values() == std::vector<std::int32_t>{10});
    must(group.barrier());
    must(communicator.close());
    CHECK(must_fail(communicator.all_reduce(buffer.at(), buffer.at(), 1, DataType::int32,
                                            ReduceOp::sum, buffer.stream()))
              .code == ErrorCode::closed);
    CHECK(group.counters().rounds == 4);  // three of the making, and the barrier
    must(group.barrier());
  });
}

TEST_CASE_FIXTURE(Machine, "a rank that leaves ends the communicator on the others") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 3);
    nccl::Options options = doubled();
    options.warm_up = true;
    auto communicator = must(nccl::create(group, rank, options));
    Buffer buffer(rank, 1);
    if (rank == 1) {
      await([&] { return must(store.add("others wait", 0)) == 2; });
      must(group.leave());
      return;
    }
    must(communicator.all_reduce(buffer.at(), buffer.at(), 1, DataType::int32, ReduceOp::sum,
                                 buffer.stream()));
    must(store.add("others wait", 1));
    await([&] { return communicator.error().has_value(); });
    CHECK(communicator.error()->code == ErrorCode::rank_left);
    CHECK(communicator.error()->rank_ranges == std::vector<RankRange>{{1, 1}});
    buffer.values();  // the abort lets the stream go
  });
}

TEST_CASE_FIXTURE(Machine, "what NCCL gives a rank after another one has left is aborted") {
  auto server = start_server();
  REQUIRE(nccl().fault("init:block=300@0") == 0);
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    std::future<void> leaving;
    if (rank == 1) {
      leaving = std::async(std::launch::async, [&] {
        await([] { return nccl().count("communicators") == 1; });
        must(group.leave());
      });
    }
    const Error error = must_fail(nccl::create(group, rank, doubled()));
    if (rank == 0) CHECK(error.code == ErrorCode::rank_left);
    if (rank == 1) leaving.get();
  });
  CHECK(holds_soon([] { return nccl().count("communicators") == 0; }));
}

TEST_CASE_FIXTURE(Machine, "a device that two ranks share is named before NCCL is entered") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 3);
    const Error error = must_fail(nccl::create(group, rank == 2 ? 1 : rank, doubled()));
    CHECK(error.code == ErrorCode::duplicate_device);
    CHECK(error.rank_ranges == std::vector<RankRange>{{1, 2}});
    CHECK(error.ranks.size() == 2);
    CHECK(nccl::failed_attempts() == 0);
  });
}

TEST_CASE_FIXTURE(Machine, "a rank without the device, and one without libnccl, are named by all") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    Error error = must_fail(nccl::create(group, rank == 1 ? 9 : rank, doubled()));
    CHECK(error.code == ErrorCode::no_device);
    CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
    nccl::Options options = doubled();
    if (rank == 0) options.nccl_library = "/nowhere/libnccl.so.2";
    error = must_fail(nccl::create(group, rank, options));
    CHECK(error.code == ErrorCode::library_missing);
    CHECK(error.rank_ranges == std::vector<RankRange>{{0, 0}});
    CHECK(error.detail.find("/nowhere/libnccl.so.2") != std::string::npos);
  });
}

TEST_CASE_FIXTURE(Machine, "a rank that never comes is named at the deadline") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 3);
    if (rank != 1) {
      const Error error = must_fail(nccl::create(group, rank, doubled(1s)));
      CHECK(error.code == ErrorCode::timed_out);
      CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
    }
    must(store.add("done", 1));
    await([&] { return must(store.get("done")) == "3"; });
  });
}

TEST_CASE_FIXTURE(Machine, "what NCCL does not finish ends at the deadline, on all ranks") {
  auto server = start_server();
  REQUIRE(nccl().fault("ready:forever@1") == 0);
  run_ranks(3, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 3);
    const auto began = std::chrono::steady_clock::now();
    const Error error = must_fail(nccl::create(group, rank, doubled(2s)));
    CHECK(error.code == ErrorCode::timed_out);
    CHECK(std::chrono::steady_clock::now() - began < 15s);
    must(group.barrier());
  });
  CHECK(nccl::failed_attempts() == 3);
}

TEST_CASE_FIXTURE(Machine, "who waits for NCCL can be interrupted, and the others hear of it") {
  auto server = start_server();
  REQUIRE(nccl().fault("ready:forever@0") == 0);
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    std::optional<Interruptible> interruptible;
    const auto is_in_nccl = [](void*) noexcept { return nccl().count("communicators") == 2; };
    if (rank == 0) interruptible.emplace(is_in_nccl, nullptr, 20ms);
    const Error error = must_fail(nccl::create(group, rank, doubled(60s)));
    interruptible.reset();
    CHECK(error.code == ErrorCode::cancelled);
    must(group.barrier());
  });
  CHECK(nccl::failed_attempts() == 2);
}

TEST_CASE_FIXTURE(Machine, "who is interrupted in the vote lets those go that wait for NCCL") {
  auto server = start_server();
  REQUIRE(nccl().fault("ready:forever@1") == 0);
  std::atomic<bool> is_voting = false;
  std::atomic<bool> is_over = false;
  auto watching = std::async(std::launch::async, [&] {
    auto store = connect(server);
    while (!is_voting && !is_over) {
      const auto report = inspect_group(store, "g");
      is_voting = nccl().count("communicators") == 2 && report && report->round &&
                  report->round->called == std::vector<RankRange>{{0, 0}};
    }
  });
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    const auto is_asked = [](void* asked) noexcept {
      return static_cast<std::atomic<bool>*>(asked)->load();
    };
    std::optional<Interruptible> interruptible;
    if (rank == 0) interruptible.emplace(is_asked, &is_voting, 20ms);
    const auto began = std::chrono::steady_clock::now();
    const Error error = must_fail(nccl::create(group, rank, doubled(60s)));
    interruptible.reset();
    CHECK(error.code == ErrorCode::cancelled);
    CHECK(std::chrono::steady_clock::now() - began < 20s);
    must(group.barrier());
  });
  is_over = true;
  watching.get();
  CHECK(is_voting);
}

TEST_CASE_FIXTURE(Machine, "rings of overlapping groups are made at once") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    auto store = connect(server);
    // Each is in a group with the next one and in one with the last one, and joins its own first.
    auto joining = std::async(std::launch::async, [&] {
      return join(store, "pair" + std::to_string((rank + 2) % 3), 1, 2);
    });
    auto own = join(store, "pair" + std::to_string(rank), 0, 2);
    auto other = joining.get();
    nccl::Communicators communicators;
    const std::vector<nccl::Request> requests{{&own, rank, doubled()}, {&other, rank, doubled()}};
    for (const auto& made : communicators.create_all(requests)) must(made);
    CHECK(communicators.count() == 2);
    auto communicator = communicators.find(own);
    REQUIRE(communicator);
    CHECK(communicator->group() == own.name());
    must(store.add("done", 1));
    await([&] { return must(store.get("done")) == "3"; });
  });
}

}  // namespace
}  // namespace muster::test
