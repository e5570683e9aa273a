// The defects of earlier systems of this kind, of groups: 1 to 6. Defect 12, the cost of a barrier,
// is in ../frames_test.cpp.

#include <unistd.h>

#include "muster/codec_cereal.h"
#include "support/ranks.h"

namespace muster::test {
namespace {

std::string number(int n) { return std::to_string(n); }

}  // namespace

TEST_CASE("defect 1: two senders to one receiver, both are delivered") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 3);
    if (rank < 2) {
      must(group.send_obj(Rank{2}, "from " + number(rank)));
    } else {
      CHECK(must(group.recv_obj<std::string>(Rank{0})) == "from 0");
      CHECK(must(group.recv_obj<std::string>(Rank{1})) == "from 1");
    }
    must(group.barrier());
  });
}

TEST_CASE("defect 2: a barrier ends at its own timeout and names all who are missing") {
  auto server = start_server();
  run_ranks(4, [&](int rank) {
    StoreOptions options;
    options.label = "pod-" + number(rank);
    auto store = connect(server, options);
    auto group = join(store, "g", rank, 4);
    if (rank >= 2) {
      must(store.wait({"done/0", "done/1"}));  // these two never come
      return;
    }
    const auto began = std::chrono::steady_clock::now();
    const Error error = must_fail(group.barrier(rank == 0 ? 1s : 60s));
    const auto took = std::chrono::steady_clock::now() - began;
    CHECK(error.code == ErrorCode::timed_out);
    CHECK(error.rank_ranges == std::vector<RankRange>{{2, 3}});
    REQUIRE(error.ranks.size() == 2);
    CHECK(error.ranks[0].process.label == "pod-2");
    CHECK(error.ranks[1].process.pid == static_cast<std::uint32_t>(::getpid()));
    CHECK(error.decided_by_rank == 0);  // the earlier of the two deadlines decides
    CHECK(took < 30s);
    must(store.set("done/" + number(rank), ""));
  });
}

TEST_CASE("defect 3: barriers leave nothing behind") {
  auto server = start_server();
  auto observer = connect(server);
  run_ranks(4, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 4);
    for (int i = 0; i < 500; ++i) must(group.barrier());
    must(group.leave());
  });
  CHECK(held_count(observer, "keys") == 0);
  await([&] { return held_count(observer, "rounds") == 0; });
  await([&] { return held_count(observer, "groups") == 0; });
}

TEST_CASE("defect 4: an object that expired is told at once, and the next one comes") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    GroupOptions options = patience();
    options.data_expiration = 100ms;
    auto group = join(store, "g", rank, 2, options);
    if (rank == 0) {
      must(group.send_obj(Rank{1}, std::string("first")));
      await([&] { return held_count(store, "objects") == 0; });
      must(store.set("expired", ""));
      must(store.wait({"asked"}));
      must(group.send_obj(Rank{1}, std::string("second")));
    } else {
      must(store.wait({"expired"}));
      const auto began = std::chrono::steady_clock::now();
      const Error error = must_fail(group.recv_obj<std::string>(Rank{0}, 60s));
      CHECK(error.code == ErrorCode::expired);
      CHECK(std::chrono::steady_clock::now() - began < 30s);
      must(store.set("asked", ""));
      CHECK(must(group.recv_obj<std::string>(Rank{0}, 10s)) == "second");
    }
    must(group.barrier());
  });
}

TEST_CASE("defect 5: a restarted rank gets no object of the earlier run") {
  auto server = start_server();
  auto store_0 = connect(server);
  std::optional<StatelessProcessGroup> group_0;
  std::optional<StatelessProcessGroup> group_1;
  auto store_1 = connect(server);
  run_ranks(2, [&](int rank) {
    (rank == 0 ? group_0 : group_1) = join(rank == 0 ? store_0 : store_1, "g", rank, 2);
  });
  for (int i = 0; i < 4; ++i) must(group_0->send_obj(Rank{1}, "old " + number(i)));
  CHECK(must(group_1->recv_obj<std::string>(Rank{0})) == "old 0");
  store_1.close();  // the run of rank 1 ends; three objects are left

  std::thread restarted([&] {
    auto store = connect(server);
    auto group = join(store, "g", 1, 2);
    CHECK(must(group.recv_obj<std::string>(Rank{0})) == "new 0");
  });
  RegroupOptions same_size;
  same_size.new_size = 2;
  auto next = must(group_0->regroup(same_size, 20s));
  must(next.send_obj(Rank{1}, std::string("new 0")));
  restarted.join();
}

TEST_CASE("defect 5: of two processes with one rank the second is refused, the first goes on") {
  auto server = start_server();
  std::vector<Store> stores;
  for (int i = 0; i < 3; ++i) stores.push_back(connect(server));
  std::vector<std::optional<StatelessProcessGroup>> groups(2);
  run_ranks(2, [&](int rank) {
    groups[static_cast<std::size_t>(rank)] =
        join(stores[static_cast<std::size_t>(rank)], "g", rank, 2);
  });
  const Error error = must_fail(StatelessProcessGroup::create(stores[2], "g", 1, 2, patience()));
  CHECK(error.code == ErrorCode::rank_in_use);
  REQUIRE(error.ranks.size() == 1);
  CHECK(error.ranks[0].process.pid == static_cast<std::uint32_t>(::getpid()));
  run_ranks(2, [&](int rank) { must(groups[static_cast<std::size_t>(rank)]->barrier()); });
}

TEST_CASE("defect 6: after a time-out the next receive gets the object that was asked for") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    if (rank == 1) {
      for (int i = 0; i < 3; ++i) {
        CHECK(must_fail(group.recv_obj<int>(Rank{0}, 50ms)).code == ErrorCode::timed_out);
      }
      must(store.set("timed out", ""));
      for (int i = 0; i < 5; ++i) CHECK(must(group.recv_obj<int>(Rank{0})) == i);
    } else {
      must(store.wait({"timed out"}));
      for (int i = 0; i < 5; ++i) must(group.send_obj(Rank{1}, i));
    }
    must(group.barrier());
  });
}

}  // namespace muster::test
