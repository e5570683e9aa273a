#include <atomic>
#include <cstddef>
#include <future>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "gloo/machine.h"
#include "muster/gloo.h"
#include "muster/nccl.h"
#include "support/ranks.h"

// Communicators of ranks that are threads: how they are made, used, and end.

namespace muster::test {
namespace {

/// Gets up to the same point on all ranks, without the group.
void meet(Store& store, const std::string& where, int count) {
  must(store.add(where, 1));
  await([&] { return must(store.get(where)) == std::to_string(count); });
}

Result<void> take_from(Communicator& communicator, int peer, Duration timeout = default_timeout) {
  std::int64_t number = 0;
  return communicator.recv(&number, 1, DataType::int64, peer, nullptr, timeout);
}

TEST_CASE("all ranks get a communicator and reduce over it") {
  auto server = start_server();
  run_ranks(4, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 4);
    auto communicator = must(gloo::create(group, within(20s)));
    CHECK(communicator.rank() == rank);
    CHECK(communicator.world_size() == 4);
    CHECK(communicator.group() == "g");
    CHECK(communicator.epoch() == group.epoch());
    CHECK_FALSE(communicator.error());
    CHECK(must(sum_of(communicator, rank + 1)) == 10);
    must(communicator.close());
    const Error error = must_fail(sum_of(communicator, 1));
    CHECK(error.code == ErrorCode::closed);
    CHECK(error.operation == "all_reduce");
    CHECK(error.group == "g");
    CHECK(group.counters().rounds == 2);
    CHECK(held_count(store, "keys") == 0);
    must(group.barrier());
    meet(store, "done", 4);
  });
}

TEST_CASE("one epoch may have several communicators, one after the other and at once") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 3);
    auto first = must(gloo::create(group, within(20s)));
    auto second = must(gloo::create(group, within(20s)));
    CHECK(must(sum_of(second, 1)) == 3);
    CHECK(must(sum_of(first, 2)) == 6);
    must(first.close());
    CHECK(must(sum_of(second, 3)) == 9);
    must(second.close());
  });
}

TEST_CASE("pairs that overlap in a ring work at the same time") {
  constexpr int ranks = 4;
  auto server = start_server();
  run_ranks(ranks, [&](int rank) {
    auto store = connect(server);
    // Each is in a pair with the next rank and in one with the last one.
    std::vector<std::thread> sides;
    for (const bool is_first : {true, false}) {
      sides.emplace_back([&, is_first] {
        const int pair = is_first ? rank : (rank + ranks - 1) % ranks;
        auto group = join(store, "pair" + std::to_string(pair), is_first ? 0 : 1, 2);
        auto communicator = must(gloo::create(group, within(20s)));
        for (int turn = 0; turn < 50; ++turn) {
          CHECK(must(sum_of(communicator, rank + turn)) == pair + (pair + 1) % ranks + 2 * turn);
        }
        must(communicator.close());
      });
    }
    for (std::thread& side : sides) side.join();
  });
}

TEST_CASE("a rank that never comes is named at the deadline") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 3);
    if (rank != 1) {
      const Error error = must_fail(gloo::create(group, within(1s)));
      CHECK(error.code == ErrorCode::timed_out);
      CHECK(error.operation == "create");
      CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
      REQUIRE(error.ranks.size() == 1);
      CHECK(error.ranks[0].process.pid != 0);
    }
    meet(store, "done", 3);
  });
}

TEST_CASE("a rank that makes an NCCL communicator instead is told so, as all are") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    nccl::Options nccl;
    nccl.timeout = 20s;
    nccl.nccl_library = "/nowhere/libnccl.so.2";
    const Error error = rank == 0 ? must_fail(gloo::create(group, within(20s)))
                                  : must_fail(nccl::create(group, 0, nccl));
    CHECK(error.code == ErrorCode::collective_mismatch);
    meet(store, "done", 2);
  });
}

TEST_CASE("an interface or address that is none is named on all ranks") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    gloo::Options options = within(20s);
    if (rank == 1) options.interface = "eth77";
    Error error = must_fail(gloo::create(group, options));
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
    CHECK(error.detail.find("lo") != std::string::npos);
    options.interface.clear();
    if (rank == 0) options.address = "0.0.0.0";
    error = must_fail(gloo::create(group, options));
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(error.rank_ranges == std::vector<RankRange>{{0, 0}});
    options.address.clear();
    options.interface = "lo";
    auto communicator = must(gloo::create(group, options));
    CHECK(must(sum_of(communicator, 1)) == 2);
    must(communicator.close());
  });
}

TEST_CASE("a store on a Unix socket, or of an IPv6 address, is enough to connect") {
  ServerOptions options;
  const std::string path = "/tmp/muster-gloo-" + std::to_string(::getpid());
  options.listen = {"unix:" + path};
  if (has_ipv6()) options.listen.push_back("[::1]:0");
  auto server = start_server(options);
  for (const std::string& address : server.addresses()) {
    CAPTURE(address);
    run_ranks(2, [&](int rank) {
      auto store = connect(address);
      auto group = join(store, address, rank, 2);
      auto communicator = must(gloo::create(group, within(20s)));
      CHECK(must(sum_of(communicator, 1)) == 2);
      must(communicator.close());
    });
  }
}

TEST_CASE("a rank that leaves lets the others out at once, and is named") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 3);
    auto communicator = must(gloo::create(group, within(20s)));
    CHECK(must(sum_of(communicator, 1)) == 3);
    if (rank == 1) {
      meet(store, "waits", 3);
      must(group.leave());
      return;
    }
    must(store.add("waits", 1));
    const auto began = std::chrono::steady_clock::now();
    const Error error = must_fail(sum_of(communicator, 1));
    CHECK(std::chrono::steady_clock::now() - began < 5s);
    CHECK(error.code == ErrorCode::rank_left);
    CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
    CHECK(communicator.error()->code == ErrorCode::rank_left);
    CHECK(must_fail(sum_of(communicator, 1)).code == ErrorCode::rank_left);
  });
}

TEST_CASE("with OnLoss::notify the host is told of a loss, and decides") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 3);
    std::promise<Error> told;
    gloo::Options options = within(20s);
    options.on_loss = OnLoss::notify;
    std::atomic<bool> is_told{false};
    options.on_end = [&](const Error& error) {
      if (!is_told.exchange(true)) told.set_value(error);
    };
    auto communicator = must(gloo::create(group, options));
    meet(store, "made", 3);
    if (rank == 2) return must(group.leave());
    auto future = told.get_future();
    REQUIRE(future.wait_for(20s) == std::future_status::ready);
    CHECK(future.get().code == ErrorCode::rank_left);
    CHECK_FALSE(communicator.error());
    // The one that left has closed its connections.
    CHECK(must_fail(take_from(communicator, 2)).code == ErrorCode::rank_left);
    CHECK(communicator.error());
  });
}

/// Its host only counts the losses it is told of.
gloo::Options counting(std::atomic<int>& losses) {
  gloo::Options options = within(20s);
  options.on_loss = OnLoss::notify;
  options.on_end = [&losses](const Error&) { ++losses; };
  return options;
}

TEST_CASE("with OnLoss::notify an earlier loss is blamed by who waits for that rank only") {
  auto server = start_server();
  run_ranks(4, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 4);
    std::atomic<int> losses{0};
    auto communicator = must(gloo::create(group, counting(losses)));
    meet(store, "made", 4);
    if (rank == 3) return must(group.leave());
    await([&] { return losses == 1; });
    if (rank == 1) communicator.abort();
    meet(store, "ended", 3);
    if (rank == 0) {
      const Error error = must_fail(take_from(communicator, 1, 500ms));
      CHECK(error.code == ErrorCode::gloo);
      CHECK(error.detail.find("rank 1") != std::string::npos);
    }
    meet(store, "told", 3);
    if (rank == 1) return must(group.leave());
    if (rank == 2) {
      await([&] { return losses == 2; });
      const auto began = std::chrono::steady_clock::now();
      const Error error = must_fail(take_from(communicator, 3));
      CHECK(std::chrono::steady_clock::now() - began < 10s);
      CHECK(error.code == ErrorCode::rank_left);
      CHECK(error.rank_ranges == std::vector<RankRange>{{3, 3}});
    }
    meet(store, "done", 2);
  });
}

TEST_CASE("with OnLoss::notify a loss within a call may be why another rank ended it") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 3);
    std::atomic<int> losses{0};
    auto communicator = must(gloo::create(group, counting(losses)));
    meet(store, "made", 3);
    if (rank == 0) {
      std::int64_t number = 0;
      const Error error = must_fail(communicator.grouped([&] {
        auto begun = communicator.recv(&number, 1, DataType::int64, 1, nullptr);
        must(store.set("inside", ""));
        await([&] { return losses == 1; });
        must(store.set("heard", ""));
        return begun;
      }));
      CHECK(error.code == ErrorCode::rank_left);
      CHECK(error.rank_ranges == std::vector<RankRange>{{2, 2}});
    } else if (rank == 1) {
      must(store.get("heard", 20s));
      communicator.abort();
    } else {
      must(store.get("inside", 20s));
      must(group.leave());
    }
    meet(store, "done", 3);
  });
}

TEST_CASE("an abort lets another thread out that waits inside") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    auto communicator = must(gloo::create(group, within(20s)));
    if (rank == 0) {
      std::atomic<bool> is_inside{false};
      std::int64_t number = 0;
      std::thread inside([&] {
        const Error error = must_fail(communicator.grouped([&] {
          auto begun = communicator.recv(&number, 1, DataType::int64, 1, nullptr);
          is_inside = true;
          return begun;
        }));
        CHECK(error.code == ErrorCode::aborted);
      });
      await([&] { return is_inside.load(); });
      CHECK(must_fail(sum_of(communicator, 1)).code == ErrorCode::busy);
      const auto began = std::chrono::steady_clock::now();
      communicator.abort();
      inside.join();
      CHECK(std::chrono::steady_clock::now() - began < 10s);
      communicator.abort();
      CHECK(communicator.error()->code == ErrorCode::aborted);
    }
    meet(store, "done", 2);
    if (rank == 1) {
      const Error error = must_fail(sum_of(communicator, 1, 1s));
      CHECK(error.code == ErrorCode::gloo);
      CHECK(error.detail.find("rank 0") != std::string::npos);
    }
    meet(store, "over", 2);
  });
}

TEST_CASE("a call that waits for a rank that does not make it ends at its deadline") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    auto communicator = must(gloo::create(group, within(20s)));
    if (rank == 0) {
      const auto began = std::chrono::steady_clock::now();
      const Error error = must_fail(sum_of(communicator, 1, 500ms));
      CHECK(error.code == ErrorCode::timed_out);
      CHECK(error.elapsed >= 500ms);
      CHECK(std::chrono::steady_clock::now() - began < 10s);  // not the 20 s of `create`
      CHECK(must_fail(sum_of(communicator, 1)).code == ErrorCode::timed_out);
    }
    meet(store, "done", 2);
  });
}

TEST_CASE("ranks that call different operations, counts or types harm nobody") {
  using Call = std::function<Result<void>(Communicator&, std::vector<double>&, int rank)>;
  const std::vector<Call> odd_calls = {
      [](Communicator& of, std::vector<double>& at, int rank) {
        return of.broadcast(at.data(), at.data(), 10 + static_cast<std::size_t>(rank),
                            DataType::float32, 0, nullptr, 500ms);
      },
      [](Communicator& of, std::vector<double>& at, int rank) {
        const DataType type = rank == 0 ? DataType::float64 : DataType::float32;
        return of.all_reduce(at.data(), at.data(), 10, type, ReduceOp::sum, nullptr, 500ms);
      },
      [](Communicator& of, std::vector<double>& at, int rank) {
        return of.broadcast(at.data(), at.data(), 10, DataType::int8, rank, nullptr, 500ms);
      },
      [](Communicator& of, std::vector<double>& at, int rank) {
        const Reduction reduction = rank == 0 ? ReduceOp::sum : scaled_sum(1);
        return of.all_reduce(at.data(), at.data(), 10, DataType::float64, reduction, nullptr,
                             500ms);
      },
      [](Communicator& of, std::vector<double>& at, int rank) {
        if (rank == 0) return of.send(at.data(), 20, DataType::float32, 1, nullptr, 500ms);
        return of.recv(at.data(), 10, DataType::float32, 0, nullptr, 500ms);
      },
  };
  auto server = start_server();
  int number = 0;
  for (const Call& call : odd_calls) {
    const std::string name = std::to_string(number++);
    run_ranks(2, [&](int rank) {
      auto store = connect(server);
      auto group = join(store, name, rank, 2);
      auto communicator = must(gloo::create(group, within(20s)));
      std::vector<double> memory(100, 7);
      const Error error = must_fail(call(communicator, memory, rank));
      // The first whose time is up closes its connections.
      const bool is_told = error.code == ErrorCode::timed_out || error.code == ErrorCode::gloo;
      CHECK(is_told);
      CHECK(memory == std::vector<double>(100, 7));
      meet(store, name, 2);
    });
  }
}

TEST_CASE("arguments that cannot be right are refused, and nothing happens") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    auto communicator = must(gloo::create(group, within(20s)));
    int number = 1;
    int* const at = &number;
    constexpr auto type = DataType::int32;
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    const std::vector<Result<void>> refused = {
        communicator.all_reduce(at, at, 1, type, ReduceOp::sum, at),
        communicator.all_reduce(at, at, most, type, ReduceOp::sum, nullptr),
        communicator.all_gather(at, at, most / 8, type, nullptr),
        communicator.all_reduce(at, at, 1, static_cast<DataType>(77), ReduceOp::sum, nullptr),
        communicator.all_reduce(at, at, 1, type, static_cast<ReduceOp>(77), nullptr),
        communicator.all_reduce(at, at, 1, type, ReduceOp::bit_or, nullptr),
        communicator.all_reduce(at, at, 1, type, scaled_sum(2), nullptr),
        communicator.all_reduce(nullptr, at, 1, type, ReduceOp::sum, nullptr),
        communicator.all_reduce(at, nullptr, 1, type, ReduceOp::sum, nullptr),
        communicator.broadcast(at, at, 1, type, 2, nullptr),
        communicator.broadcast(at, at, 1, type, -1, nullptr),
        communicator.send(at, 1, type, rank, nullptr),
        communicator.recv(at, 1, type, 2, nullptr),
        communicator.all_reduce(at, at, 1, type, ReduceOp::sum, nullptr, Duration(-7)),
    };
    for (std::size_t index = 0; index < refused.size(); ++index) {
      CAPTURE(index);
      CHECK(must_fail(refused[index]).code == ErrorCode::invalid_argument);
    }
    CHECK(must(sum_of(communicator, 1)) == 2);
    must(communicator.close());
  });
}

TEST_CASE("a communicator outlives its server, and is watched again through a new one") {
  std::optional<Server> server = start_disturbed_server();
  const std::string address = server->addresses().front();
  std::promise<void> restarted;
  const auto is_restarted = restarted.get_future().share();
  std::atomic<int> ready{0};
  std::thread restart([&] {
    await([&] { return ready == 3; });
    server.reset();
    ServerOptions options;
    options.listen = {address};
    server = start_disturbed_server(options);
    restarted.set_value();
  });
  run_ranks(3, [&](int rank) {
    auto store = connect(address);
    auto group = join(store, "g", rank, 3);
    auto communicator = must(gloo::create(group, within(20s)));
    ++ready;
    is_restarted.wait();
    await([&] { return group.barrier(1s).error().code == ErrorCode::server_restarted; });
    CHECK_FALSE(communicator.error());
    CHECK(must(sum_of(communicator, rank)) == 3);
    must(store.reopen());
    auto again = join(store, "again", rank, 3);
    must(communicator.attach(again));
    CHECK(must(sum_of(communicator, rank)) == 3);
    meet(store, "summed", 3);
    if (rank == 1) return must(again.leave());
    await([&] { return communicator.error().has_value(); });
    CHECK(communicator.error()->code == ErrorCode::rank_left);
  });
  restart.join();
}

TEST_CASE("an object that was moved from says so") {
  auto server = start_server();
  auto store = connect(server);
  auto group = join(store, "g", 0, 1);
  auto communicator = must(gloo::create(group, within(20s)));
  auto other = std::move(communicator);
  CHECK(must(sum_of(other, 5)) == 5);
  CHECK(communicator.rank() == -1);
  CHECK(communicator.group().empty());
  CHECK(communicator.error()->code == ErrorCode::closed);
  CHECK(must_fail(sum_of(communicator, 1)).code == ErrorCode::closed);
  CHECK(must_fail(communicator.close()).code == ErrorCode::closed);
  communicator.abort();
}

}  // namespace
}  // namespace muster::test
