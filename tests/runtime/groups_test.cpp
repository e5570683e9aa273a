#include <atomic>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "muster/codec_cereal.h"
#include "muster/runtime.h"
#include "runtime/job.h"

// Groups of some ranks of the job, and how a process's part ends.

namespace muster::test {
namespace {

TEST_CASE("a subgroup has the ranks that were named, in their order; only they call it") {
  Job job(4);
  job.run([](Runtime& runtime) {
    const std::vector<int> ranks = {3, 1, 2};
    if (runtime.rank() == 0) {
      const Error error = must_fail(runtime.subgroup(ranks));
      CHECK(error.code == ErrorCode::invalid_argument);
    } else {
      auto group = must(runtime.subgroup(ranks));
      CHECK(group.world_ranks() == ranks);
      CHECK(ranks[static_cast<std::size_t>(group.group()->rank())] == runtime.rank());
      CHECK(group.rank_of(3) == 0);
      CHECK_FALSE(group.rank_of(0));
      CHECK(must(group.group()->all_gather_obj(runtime.rank())) == ranks);
    }
    must(runtime.world().group()->barrier());
  });
}

TEST_CASE("V1: groups overlap; a broadcast from their common rank reaches the right ones") {
  Job job(4);
  job.run([](Runtime& runtime) {
    const int rank = runtime.rank();
    StatelessProcessGroup& world = *runtime.world().group();
    if (rank <= 2) {
      auto three = must(runtime.subgroup(Span<const int>({0, 1, 2})));
      CHECK(must(three.group()->broadcast_obj(rank, Rank(2))) == 2);
      CHECK(must(world.broadcast_obj(rank, Rank(3))) == 3);
      must(three.group()->barrier());
    } else {
      CHECK(must(world.broadcast_obj(rank, Rank(3))) == 3);
    }
    must(world.barrier());
  });
}

TEST_CASE("subgroups of the same ranks have names of their own") {
  Job job(2);
  job.run([](Runtime& runtime) {
    const std::vector<int> both = {0, 1};
    SubgroupOptions named;
    named.name = "second";
    auto first = must(runtime.subgroup(both));
    auto second = must(runtime.subgroup(both, named));
    must(first.group()->barrier());
    must(second.group()->barrier());
    must(runtime.world().group()->barrier());
  });
}

TEST_CASE("ranks that ask for a subgroup again get another one, whoever has kept the first") {
  Job job(3);
  job.run([](Runtime& runtime) {
    const std::vector<int> all = {0, 1, 2};
    SubgroupOptions soon;
    soon.timeout = 5s;
    auto kept = std::optional(must(runtime.subgroup(all)));
    if (runtime.rank() == 1) kept.reset();
    auto next = must(runtime.subgroup(all, soon));
    CHECK(must(next.group()->all_gather_obj(runtime.rank())) == all);
    auto last = must(runtime.subgroup(all, soon));
    CHECK(must(last.group()->broadcast_obj(runtime.rank(), Rank(2))) == 2);
    must(next.group()->barrier());
    must(runtime.world().group()->barrier());
  });
}

TEST_CASE("no name of a subgroup is that of another one that was formed twice") {
  Job job(2);
  job.run([](Runtime& runtime) {
    const std::vector<int> both = {0, 1};
    SubgroupOptions soon;
    soon.timeout = 5s;
    std::vector<RankGroup> groups;
    for (const char* const name : {"y#2", "y", "y", "x", "x", "x#2", "#2", "", ""}) {
      soon.name = name;
      groups.push_back(must(runtime.subgroup(both, soon)));
    }
    for (const RankGroup& group : groups) must(group.group()->barrier());
    must(runtime.world().group()->barrier());
  });
}

TEST_CASE("a subgroup that has not formed in time is formed by the next calls") {
  Job job(2);
  std::atomic<bool> has_failed = false;
  job.run([&](Runtime& runtime) {
    const std::vector<int> both = {0, 1};
    SubgroupOptions brief;
    brief.timeout = 50ms;
    if (runtime.rank() == 0) {
      // On a machine that is busy enough the server's answer comes too late to be received.
      const ErrorCode code = must_fail(runtime.subgroup(both, brief)).code;
      CHECK((code == ErrorCode::timed_out || code == ErrorCode::outcome_unknown));
      has_failed = true;
    }
    await([&] { return has_failed.load(); });
    auto group = must(runtime.subgroup(both));
    must(group.group()->barrier());
  });
}

TEST_CASE("each dimension of size 1 of a mesh has a group of its own") {
  for (const int data : {1, 2}) {
    Job job(data);
    const Mesh mesh = must(Mesh::create({{"data", data}, {"tensor", 1}, {"pipeline", 1}}));
    job.run([&](Runtime& runtime) {
      std::vector<RankGroup> groups;
      for (const std::string dimension : {"tensor", "data", "pipeline"}) {
        groups.push_back(must(runtime.subgroup(mesh, dimension)));
        const std::string name(groups.back().group()->name());
        CHECK(name.find("@" + dimension) != std::string::npos);  // operators see it
      }
      SubgroupOptions named;
      named.name = "second";
      groups.push_back(must(runtime.subgroup(mesh, "tensor", named)));
      for (const RankGroup& group : groups) must(group.group()->barrier());
      std::set<std::string> names;
      for (const RankGroup& group : groups) names.insert(std::string(group.group()->name()));
      CHECK(names.size() == groups.size());
      must(runtime.world().group()->barrier());
    });
  }
}

TEST_CASE("the ranks of a subgroup are of the world, each once") {
  Job job(2);
  job.run([](Runtime& runtime) {
    for (const std::vector<int>& wrong : {std::vector<int>{}, {0, 1, 1}, {0, 1, 2}, {-1, 0, 1}})
      CHECK(must_fail(runtime.subgroup(wrong)).code == ErrorCode::invalid_argument);
    must(runtime.world().group()->barrier());
  });
}

TEST_CASE("a mesh gives each rank the groups of its dimensions") {
  Job job(6);
  const Mesh mesh = must(Mesh::create({{"data", 2}, {"tensor", 3}}));
  job.run([&](Runtime& runtime) {
    auto data = must(runtime.subgroup(mesh, "data"));
    auto tensor = must(runtime.subgroup(mesh, "tensor"));
    const int rank = runtime.rank();
    CHECK(data.world_ranks() == std::vector{rank % 3, rank % 3 + 3});
    CHECK(tensor.world_ranks() == std::vector{rank / 3 * 3, rank / 3 * 3 + 1, rank / 3 * 3 + 2});
    CHECK(must(tensor.group()->all_gather_obj(rank)) == tensor.world_ranks());
    CHECK(must(data.group()->all_gather_obj(rank)) == data.world_ranks());
    CHECK(must_fail(runtime.subgroup(mesh, "pipeline")).code == ErrorCode::invalid_argument);
    must(runtime.world().group()->barrier());
  });
}

TEST_CASE("the place of a rank in a mesh is found, and one that is not in it has none") {
  const Mesh mesh = must(Mesh::create({{"a", 2}, {"b", 1}, {"c", 3}}, {10, 11, 12, 7, 8, 9}));
  CHECK(mesh.coordinates(8) == std::vector<int>{1, 0, 1});
  CHECK_FALSE(mesh.coordinates(0));
  CHECK(must(mesh.ranks_along("a", 9)) == std::vector<int>{12, 9});
  CHECK(must(mesh.ranks_along("b", 9)) == std::vector<int>{9});
  CHECK(must(mesh.ranks_along("c", 7)) == std::vector<int>{7, 8, 9});
  CHECK(must_fail(mesh.ranks_along("a", 0)).code == ErrorCode::invalid_argument);
}

TEST_CASE("a mesh has dimensions, sizes above zero, and each rank once") {
  CHECK_FALSE(Mesh::create({}));
  CHECK_FALSE(Mesh::create({{"a", 0}}));
  CHECK_FALSE(Mesh::create({{"a", 2}, {"a", 2}}));
  CHECK_FALSE(Mesh::create({{"a", 2}}, {0}));
  CHECK_FALSE(Mesh::create({{"a", 2}}, {0, 0}));
  CHECK_FALSE(Mesh::create({{"a", 2}}, {0, -1}));
  CHECK_FALSE(Mesh::create({{"a", 1 << 30}, {"b", 1 << 30}}));
}

TEST_CASE("shutdown says who is missing, and leaves all the same") {
  Job job(3);
  std::atomic<int> gone = 0;
  job.run([&](Runtime& runtime) {
    if (runtime.rank() == 1) return await([&] { return gone == 2; });
    const Error error = must_fail(runtime.shutdown(1s));
    CHECK(error.code == ErrorCode::timed_out);
    CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
    CHECK_FALSE(runtime.is_initialized());
    ++gone;
  });
}

}  // namespace
}  // namespace muster::test
