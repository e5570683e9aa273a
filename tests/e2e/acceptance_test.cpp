// What users of other process groups test theirs with, many times in a row.

#include <numeric>

#include "muster/codec_cereal.h"
#include "muster/codec_json.h"
#include "support/ranks.h"
#include "support/scale.h"

namespace muster::test {
namespace {

/// Four ranks with one connection each; groups are formed anew in every repetition.
class FourRanks {
 public:
  FourRanks() : server_(start_server()) {
    for (int rank = 0; rank < 4; ++rank) stores_.push_back(connect(server_));
  }

  /// Runs `part(rank, store, name)` on all ranks, `repetitions` times, each with a fresh name.
  void repeat(
      int repetitions,
      const std::function<void(int rank, const Store& store, const std::string& name)>& part) {
    run_ranks(4, [&](int rank) {
      for (int i = 0; i < repetitions; ++i) {
        part(rank, stores_[static_cast<std::size_t>(rank)], "group-" + std::to_string(i));
      }
    });
    await([&] { return held_count(stores_[0], "groups") == 0; });
    CHECK(held_count(stores_[0], "keys") == 0);
    CHECK(held_count(stores_[0], "objects") == 0);
    CHECK(held_count(stores_[0], "rounds") == 0);
  }

 private:
  Server server_;
  std::vector<Store> stores_;
};

/// How readers find a queue of their writer.
struct Handle {
  std::string path;
  std::vector<std::uint64_t> offsets;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(path, offsets);
  }
};

constexpr int runs_of_each = 1000;

}  // namespace

TEST_CASE("overlapping groups broadcast from rank 2 and pass both barriers, 1,000 times") {
  FourRanks ranks;
  ranks.repeat(scaled(runs_of_each), [](int rank, const Store& store, const std::string& name) {
    auto wide = join(store, name + "/wide", rank, 4);
    if (rank < 3) {
      auto narrow = join(store, name + "/narrow", rank, 3);
      CHECK(must(wide.broadcast_obj(rank, Rank{2})) == 2);
      CHECK(must(narrow.broadcast_obj(rank + 1, Rank{2})) == 3);
      must(narrow.barrier());
      must(wide.barrier());
      must(narrow.leave());
    } else {
      CHECK(must(wide.broadcast_obj(rank, Rank{2})) == 2);
      must(wide.barrier());
    }
    must(wide.leave());
  });
}

TEST_CASE("everybody gets the secret of rank 2, 1,000 times") {
  FourRanks ranks;
  ranks.repeat(scaled(runs_of_each), [](int rank, const Store& store, const std::string& name) {
    auto group = join(store, name, rank, 4);
    CHECK(must(group.broadcast_obj(std::string(rank == 2 ? "secret" : ""), Rank{2})) == "secret");
    must(group.barrier());
    must(group.leave());
  });
}

TEST_CASE("all_gather gives 0..3, 1,000 times") {
  FourRanks ranks;
  ranks.repeat(scaled(runs_of_each), [](int rank, const Store& store, const std::string& name) {
    auto group = join(store, name, rank, 4);
    CHECK(must(group.all_gather_obj(rank)) == std::vector<int>{0, 1, 2, 3});
    must(group.barrier());
    must(group.leave());
  });
}

TEST_CASE("a queue's handle goes round and its readers get every array alike") {
  FourRanks ranks;
  ranks.repeat(1, [](int rank, const Store& store, const std::string& name) {
    auto group = join(store, name, rank, 4);
    Handle handle;
    if (rank == 0) handle = {"/queue", {0, 4096, 8192}};
    handle = must(group.broadcast_obj(handle, Rank{0}));
    CHECK(handle.path == "/queue");
    CHECK(handle.offsets.back() == 8192);
    const int arrays = scaled(10000);
    std::vector<std::uint32_t> array(64);
    for (int i = 0; i < arrays; ++i) {
      if (rank == 0) std::iota(array.begin(), array.end(), static_cast<std::uint32_t>(i));
      const auto got = must(group.broadcast_obj(array, Rank{0}));
      REQUIRE(got.front() == static_cast<std::uint32_t>(i));
      REQUIRE(got.back() == static_cast<std::uint32_t>(i + 63));
    }
    must(group.barrier());
    must(group.leave());
  });
}

TEST_CASE("two disjoint groups progress independently") {
  FourRanks ranks;
  ranks.repeat(1, [](int rank, const Store& store, const std::string& name) {
    auto group = join(store, name + (rank < 2 ? "/low" : "/high"), rank % 2, 2);
    if (rank >= 2) {  // the high group is done before the low one begins
      for (int i = 0; i < 100; ++i) must(group.barrier());
      CHECK(must(group.all_gather_obj(rank)) == std::vector<int>{2, 3});
    }
    auto all = join(store, name + "/all", rank, 4);
    must(all.barrier());
    if (rank < 2) CHECK(must(group.all_gather_obj(rank)) == std::vector<int>{0, 1});
    must(group.leave());
    must(all.leave());
  });
}

TEST_CASE("a broadcast works from every root, and objects go round a ring") {
  FourRanks ranks;
  ranks.repeat(scaled(50), [](int rank, const Store& store, const std::string& name) {
    auto group = join(store, name, rank, 4);
    for (int root = 0; root < 4; ++root) {
      CHECK(must(group.broadcast_obj<JsonCodec>(rank * 10, Rank{root})) == root * 10);
    }
    must(group.send_obj<JsonCodec>(Rank((rank + 1) % 4), rank));
    CHECK(must(group.recv_obj<int, JsonCodec>(Rank((rank + 3) % 4))) == (rank + 3) % 4);
    CHECK(must(group.all_reduce_obj(rank + 1, std::plus<>())) == 10);
    must(group.barrier());
    must(group.leave());
  });
}

TEST_CASE("a duplicate rank is refused; at the time-out every rank, also a late one, is told") {
  auto server = start_server();
  std::vector<Store> stores;
  for (int i = 0; i < 3; ++i) stores.push_back(connect(server));
  run_ranks(2, [&](int rank) {
    auto group = join(stores[static_cast<std::size_t>(rank)], "g", rank, 2);
    if (rank == 0) {
      const auto twice = StatelessProcessGroup::create(stores[2], "g", 0, 2, patience());
      CHECK(must_fail(twice).code == ErrorCode::rank_in_use);
      CHECK(must_fail(group.barrier(100ms)).code == ErrorCode::timed_out);
      must(stores[0].set("over", ""));
    } else {
      must(stores[1].wait({"over"}));
      const Error late = must_fail(group.barrier(10s));
      CHECK(late.code == ErrorCode::timed_out);
      CHECK(late.decided_by_rank == 0);
      CHECK(late.rank_ranges == std::vector<RankRange>{{1, 1}});
    }
    must(group.barrier());
  });
}

}  // namespace muster::test
