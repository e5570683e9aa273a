#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "muster/codec_raw.h"
#include "muster/nccl_id.h"
#include "nccl/descriptors.h"
#include "nccl/doubles/nccl_control.h"
#include "support/ranks.h"

// Groups of threads, with the tests' own libnccl: NCCL_DOUBLE says where it is.

namespace muster::test {
namespace {

class Double {
 public:
  Double() : path_(std::getenv("NCCL_DOUBLE")), handle_(::dlopen(path_.c_str(), RTLD_NOW)) {
    REQUIRE(handle_ != nullptr);
  }
  ~Double() {
    refuse(0);
    before(nullptr);
  }

  nccl::IdOptions options() const {
    nccl::IdOptions options;
    options.library = path_;
    return options;
  }
  void refuse(int result) const {
    find<decltype(nccl_double_refuse)>("nccl_double_refuse")(result);
  }
  void before(void (*action)()) const {
    find<decltype(nccl_double_before)>("nccl_double_before")(action);
  }
  int waiting() const { return find<decltype(nccl_double_waiting)>("nccl_double_waiting")(); }

 private:
  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

  std::string path_;
  void* handle_;
};

using Ids = std::vector<Result<nccl::UniqueId>>;

/// What each rank of a new group gets.
Ids agree(const Server& server, const std::string& name, int world_size,
          const std::function<nccl::IdOptions(int rank)>& options) {
  Ids ids(static_cast<std::size_t>(world_size), Error());
  run_ranks(world_size, [&](int rank) {
    const Store store = connect(server);
    auto group = join(store, name, rank, world_size);
    ids[static_cast<std::size_t>(rank)] = nccl::unique_id(group, 10s, options(rank));
    must(group.barrier());  // the group goes on, and nobody leaves before all are told
  });
  return ids;
}

nccl::UniqueId brought(char byte) {
  nccl::UniqueId id{};
  id.fill(byte);
  return id;
}

TEST_CASE("all ranks get the id that rank 0 made") {
  const Double nccl;
  const std::size_t inherited = inherited_count();
  const Server server = start_server();
  const Ids ids = agree(server, "job", 4, [&](int) { return nccl.options(); });
  for (const auto& id : ids) CHECK(must(id) == must(ids[0]));
  CHECK(must(ids[0]) != nccl::UniqueId{});
  CHECK(nccl.waiting() == 1);
  CHECK(inherited_count() == inherited);  // although NCCL leaves its socket open for children
  CHECK(nccl::give_up(must(ids[0])));
  await([&] { return nccl.waiting() == 0; });
  CHECK_FALSE(nccl::give_up(must(ids[0])));
}

TEST_CASE("each call gives an id of its own and leaves no key behind") {
  const Double nccl;
  const Server server = start_server();
  Store store = connect(server);
  auto group = join(store, "job", 0, 1);
  const nccl::UniqueId first = must(nccl::unique_id(group, 10s, nccl.options()));
  const nccl::UniqueId second = must(nccl::unique_id(group, 10s, nccl.options()));
  CHECK(first != second);
  CHECK(held_count(store, "keys") == 0);
  CHECK(held_count(store, "rounds") == 0);
}

TEST_CASE("overlapping groups that are asked in different orders do not mix their ids") {
  const Double nccl;
  const Server server = start_server();
  // Rank r is in ring r (as its rank 0) and in the ring before it (as its rank 1).
  std::array<std::array<nccl::UniqueId, 2>, 3> ids{};
  run_ranks(3, [&](int rank) {
    const Store store = connect(server);
    const auto ring = [&](int number, int rank_in_ring) {
      auto group = join(store, "ring " + std::to_string(number), rank_in_ring, 2);
      auto& slot = ids[static_cast<std::size_t>(number)][static_cast<std::size_t>(rank_in_ring)];
      slot = must(nccl::unique_id(group, 10s, nccl.options()));
      must(group.barrier());
    };
    // In one order everywhere a ring of blocking calls would wait for ever.
    const int before = (rank + 2) % 3;
    if (rank == 0) ring(before, 1);
    ring(rank, 0);
    if (rank != 0) ring(before, 1);
  });
  for (const auto& ring : ids) CHECK(ring[0] == ring[1]);
  CHECK(ids[0] != ids[1]);
  CHECK(ids[1] != ids[2]);
}

TEST_CASE("a rank that restarted agrees with those that lived on, however many ids they had") {
  const Double nccl;
  ServerOptions server_options;
  server_options.grace = 50ms;
  const Server server = start_server(server_options);
  const Store survivor = connect(server);
  std::optional<StatelessProcessGroup> group;
  {
    std::optional<Store> mortal = connect(server);
    std::optional<StatelessProcessGroup> other;
    run_ranks(2, [&](int rank) {
      auto& mine = rank == 0 ? group : other;
      mine = join(rank == 0 ? survivor : *mortal, "job", rank, 2);
      for (int i = 0; i < 3; ++i) must(nccl::unique_id(*mine, 10s, nccl.options()));
    });
  }
  std::array<nccl::UniqueId, 2> ids{};
  run_ranks(2, [&](int rank) {
    if (rank == 0) {
      RegroupOptions same_size;
      same_size.new_size = 2;
      auto next = must(group->regroup(same_size, 10s));
      ids[0] = must(nccl::unique_id(next, 10s, nccl.options()));
      must(next.barrier());
      return;
    }
    GroupOptions standby = patience();
    standby.standby = true;
    const Store store = connect(server);
    auto joined = join(store, "job", 1, 2, standby);
    ids[1] = must(nccl::unique_id(joined, 10s, nccl.options()));
    must(joined.barrier());
  });
  CHECK(ids[0] == ids[1]);
}

TEST_CASE("an id that one rank brings is everybody's, and libnccl is not asked") {
  const Server server = start_server();
  const Ids ids = agree(server, "job", 3, [&](int rank) {
    nccl::IdOptions options;
    options.library = "/nowhere/libnccl.so.2";
    if (rank == 1) options.id = brought('a');
    return options;
  });
  for (const auto& id : ids) CHECK(must(id) == brought('a'));
}

TEST_CASE("ranks that bring different ids are named to all") {
  const Server server = start_server();
  const Ids ids = agree(server, "job", 4, [&](int rank) {
    nccl::IdOptions options;
    if (rank > 0) options.id = brought(rank == 3 ? 'b' : 'a');
    return options;
  });
  for (const auto& id : ids) {
    const Error error = must_fail(id);
    CHECK(error.code == ErrorCode::mismatch);
    REQUIRE(error.ranks.size() == 1);
    CHECK(error.ranks[0].rank == 3);
    CHECK(error.ranks[0].process.pid == static_cast<std::uint32_t>(::getpid()));
  }
}

TEST_CASE("when libnccl is missing at rank 0 all ranks are told so, and where") {
  const Double nccl;
  const Server server = start_server();
  const Ids ids = agree(server, "job", 3, [&](int rank) {
    nccl::IdOptions options = nccl.options();
    if (rank == 0) options.library = "/nowhere/libnccl.so.2";
    return options;
  });
  for (const auto& id : ids) {
    const Error error = must_fail(id);
    CHECK(error.code == ErrorCode::library_missing);
    CHECK(error.group == "job");
    CHECK(error.operation == "unique_id");
    CHECK(error.detail.find("/nowhere/libnccl.so.2") != std::string::npos);
    REQUIRE(error.ranks.size() == 1);
    CHECK(error.ranks[0].rank == 0);
    CHECK(error.ranks[0].process.pid == static_cast<std::uint32_t>(::getpid()));
  }
}

TEST_CASE("when NCCL refuses all ranks are told what it said") {
  const Double nccl;
  nccl.refuse(2);
  const Server server = start_server();
  for (const auto& id : agree(server, "job", 2, [&](int) { return nccl.options(); })) {
    const Error error = must_fail(id);
    CHECK(error.code == ErrorCode::nccl);
    CHECK(error.actual == 2);
  }
}

TEST_CASE("NCCL_COMM_ID at rank 0 is refused: all ids would be one") {
  const Double nccl;
  const Server server = start_server();
  Store store = connect(server);
  auto group = join(store, "job", 0, 1);
  ::setenv("NCCL_COMM_ID", "127.0.0.1:1", 1);
  const auto id = nccl::unique_id(group, 10s, nccl.options());
  ::unsetenv("NCCL_COMM_ID");
  CHECK(must_fail(id).code == ErrorCode::nccl);
}

TEST_CASE("NCCL_COMM_ID that NCCL finds in its configuration file is refused, too") {
  const Double nccl;
  const int waiting = nccl.waiting();
  const Server server = start_server();
  Store store = connect(server);
  auto group = join(store, "job", 0, 1);
  nccl.before([] { ::setenv("NCCL_COMM_ID", "127.0.0.1:1", 1); });
  const auto id = nccl::unique_id(group, 10s, nccl.options());
  ::unsetenv("NCCL_COMM_ID");
  CHECK(must_fail(id).code == ErrorCode::nccl);
  await([&] { return nccl.waiting() == waiting; });
}

TEST_CASE("a rank that does not come is named at the deadline, and no id is made") {
  const Double nccl;
  const int waiting = nccl.waiting();
  const Server server = start_server();
  run_ranks(2, [&](int rank) {
    const Store store = connect(server);
    auto group = join(store, "job", rank, 2);
    if (rank == 1) return must(group.recv_bytes(Rank{0}, codec_id::raw, Tag(), 10s)), void();
    const Error error = must_fail(nccl::unique_id(group, 200ms, nccl.options()));
    CHECK(error.code == ErrorCode::timed_out);
    CHECK(error.operation == "unique_id");
    REQUIRE(error.ranks.size() == 1);
    CHECK(error.ranks[0].rank == 1);
    must(group.send_bytes(Rank{1}, codec_id::raw, "it may go now"));
  });
  CHECK(nccl.waiting() == waiting);
}

std::promise<void> rank_1_has_left;

TEST_CASE("an id that cannot be told to the others is given up") {
  const Double nccl;
  const int waiting = nccl.waiting();
  const Server server = start_server();
  // Rank 1 has come, and is gone before there is an id to tell it.
  nccl.before([] { rank_1_has_left.get_future().wait(); });
  run_ranks(2, [&](int rank) {
    const Store store = connect(server);
    auto group = join(store, "job", rank, 2);
    if (rank == 0) {
      const Error error = must_fail(nccl::unique_id(group, 10s, nccl.options()));
      CHECK(error.code == ErrorCode::rank_left);
      return;
    }
    must(group.all_gather_bytes("", codec_id::nccl));
    must(group.leave());
    rank_1_has_left.set_value();
  });
  await([&] { return nccl.waiting() == waiting; });
}

std::promise<void> may_make;

TEST_CASE("a libnccl that takes too long ends the call in its time, and its id is given up") {
  const Double nccl;
  const int waiting = nccl.waiting();
  const Server server = start_server();
  nccl.before([] { may_make.get_future().wait(); });
  run_ranks(2, [&](int rank) {
    const Store store = connect(server);
    auto group = join(store, "job", rank, 2);
    if (rank == 1) let_pass(200ms);  // of the time of rank 0's call
    const Error error = must_fail(nccl::unique_id(group, 500ms, nccl.options()));
    CHECK(error.code == ErrorCode::timed_out);
    REQUIRE(error.ranks.size() == 1);
    CHECK(error.ranks[0].rank == 0);
    // The second round had what the first one left.
    if (rank == 1) CHECK(error.decided_by_timeout < 500ms);
    if (rank == 0) CHECK(error.elapsed < 5s);
  });
  may_make.set_value();
  await([&] { return nccl.waiting() == waiting; });
}

TEST_CASE("another all_gather is not taken for a call of it") {
  const Double nccl;
  const Server server = start_server();
  run_ranks(2, [&](int rank) {
    const Store store = connect(server);
    auto group = join(store, "job", rank, 2);
    if (rank == 0) {
      const auto id = nccl::unique_id(group, 10s, nccl.options());
      CHECK(must_fail(id).code == ErrorCode::collective_mismatch);
    } else {
      const auto all = group.all_gather_obj<RawCodec>(brought('a'));
      CHECK(must_fail(all).code == ErrorCode::collective_mismatch);
    }
    must(group.barrier());
  });
}

TEST_CASE("an id that is all zero is refused for all, with who brought it") {
  const Server server = start_server();
  const Ids ids = agree(server, "job", 3, [&](int rank) {
    nccl::IdOptions options;
    if (rank == 1) options.id = nccl::UniqueId{};
    if (rank == 2) options.id = brought('a');
    return options;
  });
  for (const auto& id : ids) {
    const Error error = must_fail(id);
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
  }
}

TEST_CASE("a time that cannot be meant is refused here") {
  const Double nccl;
  const Server server = start_server();
  Store store = connect(server);
  auto group = join(store, "job", 0, 1);
  CHECK(must_fail(nccl::unique_id(group, 0s, nccl.options())).code == ErrorCode::invalid_argument);
  CHECK(must_fail(nccl::unique_id(group, default_timeout)).code == ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace muster::test
