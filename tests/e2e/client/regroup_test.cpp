#include <future>
#include <memory>
#include <mutex>
#include <optional>

#include "muster/codec_cereal.h"
#include "muster/inspect.h"
#include "support/ranks.h"

// How a group goes on: its members form the next epoch, with candidates or without some of them.

namespace muster::test {
namespace {

using Group = StatelessProcessGroup;

TEST_CASE("a rank that leaves is told of once, and the others regroup") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    struct Losses {
      std::mutex mutex;
      std::vector<Error> all;
    };
    const auto losses = std::make_shared<Losses>();  // on_leave may run after the store is gone
    GroupOptions options = patience();
    options.on_leave = [losses](const Error& error) {
      const std::lock_guard lock(losses->mutex);
      losses->all.push_back(error);
    };
    options.on_loss = [](const Error&) { FAIL("nobody was lost"); };
    auto store = connect(server);
    auto group = join(store, "g", rank, 3, options);
    must(group.barrier());
    if (rank == 1) {
      must(group.leave());
      CHECK(must_fail(group.barrier()).code == ErrorCode::closed);
      return;
    }
    const Error error = must_fail(group.barrier());
    CHECK(error.code == ErrorCode::rank_left);
    CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
    auto next = must(group.regroup());
    CHECK(next.world_size() == 2);
    CHECK(next.rank() == (rank == 0 ? 0 : 1));
    const auto members = must(next.members());
    REQUIRE(members.size() == 2);
    CHECK(members[0].previous_rank == 0);
    CHECK(members[1].previous_rank == 2);
    CHECK(next.epoch() > group.epoch());
    CHECK(must_fail(group.barrier()).code == ErrorCode::stale_epoch);
    CHECK(must(next.all_gather_obj(rank)) == std::vector<int>{0, 2});
    must(next.barrier());
    await([&] {
      const std::lock_guard lock(losses->mutex);
      return !losses->all.empty();
    });
    const std::lock_guard lock(losses->mutex);
    // The other survivor may be gone by now; that is a loss of the next epoch.
    CHECK((losses->all.size() == 1 || losses->all[1].epoch == next.epoch()));
    CHECK(losses->all[0].epoch == group.epoch());
    CHECK(losses->all[0].code == ErrorCode::rank_left);
    CHECK(losses->all[0].group == "g");
    CHECK(losses->all[0].rank_ranges == std::vector<RankRange>{{1, 1}});
  });
}

TEST_CASE("a regroup with everyone takes in whom the server has, however many they are") {
  auto server = start_server();
  run_ranks(4, [&](int rank) {
    auto store = connect(server);
    GroupOptions standby = patience();
    standby.standby = true;
    if (rank >= 2) {
      must(store.get("formed"));
      auto group = join(store, "g", rank, 4, standby);
      CHECK(must(group.all_gather_obj(group.rank())) == std::vector<int>{0, 1, 2, 3});
      return;
    }
    auto group = join(store, "g", rank, 2);
    RegroupOptions everyone;
    everyone.new_size = 3;
    everyone.everyone = true;
    CHECK(must_fail(group.regroup(everyone)).code == ErrorCode::invalid_argument);
    if (rank == 0) must(store.set("formed", ""));
    await([&] { return must(group.members()).size() == 4; });
    everyone.new_size = 0;
    auto next = must(group.regroup(everyone));
    CHECK(next.rank() == rank);
    CHECK(must(next.all_gather_obj(next.rank())) == std::vector<int>{0, 1, 2, 3});
  });
}

TEST_CASE("a regroup to a size ends as soon as one who was there for it goes") {
  auto server = start_server();
  auto store = connect(server);
  auto other = connect(server);
  std::optional<Store> leaving = connect(server);
  auto joined = std::async(std::launch::async, [&] { return join(other, "g", 1, 2); });
  auto group = join(store, "g", 0, 2);
  auto its_group = joined.get();
  GroupOptions standby = patience();
  standby.standby = true;
  auto candidate = StatelessProcessGroup::create_async(*leaving, "g", 2, 3, standby,
                                                       [](Result<StatelessProcessGroup>) {});
  await([&] { return must(group.members()).size() == 3; });
  RegroupOptions larger;
  larger.new_size = 3;
  auto regrouped = std::async(std::launch::async, [&] { return its_group.regroup(larger); });
  await([&] {
    const auto report = must(inspect_group(store, "g"));
    return report.regroup && report.regroup->called == std::vector<RankRange>{{1, 1}};
  });
  leaving.reset();
  for (const Error& error : {must_fail(regrouped.get()), must_fail(group.regroup(larger))}) {
    CHECK(error.code == ErrorCode::rank_left);
    CHECK(error.rank_ranges == std::vector<RankRange>{{2, 2}});
    CHECK(error.happened == Happened::no);
  }
  // In step: both handles go on.
  auto next = std::async(std::launch::async, [&] { return its_group.regroup(); });
  CHECK(must(group.regroup()).world_size() == 2);
  CHECK(must(next.get()).rank() == 1);
}

TEST_CASE("a standby candidate is seen and taken in when the group grows") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    auto store = connect(server);
    if (rank == 2) {
      GroupOptions standby = patience();
      standby.standby = true;
      standby.info = "spare";
      must(store.get("formed"));
      auto group = join(store, "g", 2, 3, standby);
      CHECK(group.rank() == 2);
      must(group.barrier());
      return;
    }
    auto group = join(store, "g", rank, 2);
    must(group.barrier());
    if (rank == 0) must(store.set("formed", ""));
    await([&] {
      for (const MemberInfo& member : must(group.members())) {
        if (member.state == MemberState::candidate) return member.info == "spare";
      }
      return false;
    });
    RegroupOptions larger;
    larger.new_size = 3;
    auto next = must(group.regroup(larger));
    CHECK(next.world_size() == 3);
    must(next.barrier());
  });
}

TEST_CASE("cancel ends a regroup for all who called it, and the next one forms") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    RegroupOptions larger;
    larger.new_size = 3;  // nobody comes to be the third
    if (rank == 0) {
      std::promise<Result<Group>> regrouped;
      group.regroup_async(larger, 20s,
                          [&](auto result) { regrouped.set_value(std::move(result)); });
      must(store.get("called"));
      group.cancel();
      CHECK(must_fail(regrouped.get_future().get()).code == ErrorCode::cancelled);
      must(store.set("cancelled", ""));
    } else {
      std::promise<Result<Group>> regrouped;
      group.regroup_async(larger, 20s,
                          [&](auto result) { regrouped.set_value(std::move(result)); });
      must(store.set("called", ""));
      const Error error = must_fail(regrouped.get_future().get());
      CHECK(error.code == ErrorCode::cancelled);
      CHECK(error.rank_ranges == std::vector<RankRange>{{0, 0}});
      CHECK(error.elapsed < 10s);
      must(store.get("cancelled"));
    }
    must(group.barrier());
    auto next = must(group.regroup());
    CHECK(next.world_size() == 2);
    must(next.barrier());
  });
}

TEST_CASE("a group has one handle on a store; a second create says so and harms nothing") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    const auto second = Group::create(store, "g", rank, 2, patience());
    CHECK(must_fail(second).code == ErrorCode::busy);
    must(group.barrier());
    must(group.regroup());
  });
}

TEST_CASE("after a restart of the server a group forms anew beside its dead handle") {
  auto first = std::make_unique<Server>(start_disturbed_server());
  ServerOptions same;
  same.listen = {first->addresses().front()};
  auto store = connect(same.listen.front());
  auto dead = std::make_unique<Group>(join(store, "g", 0, 1));
  first.reset();
  const auto second = start_disturbed_server(same);
  // A call that was pending when the first one stopped is told that; later ones that it came back.
  await([&] { return must_fail(store.get("k", 5s)).code == ErrorCode::server_restarted; });
  must(store.reopen());
  auto group = join(store, "g", 0, 1);
  CHECK(group.epoch() == dead->epoch());  // each server counts from the beginning
  must(group.barrier());
  CHECK(must_fail(dead->barrier()).code == ErrorCode::server_restarted);
  dead.reset();
  must(group.barrier());
}

}  // namespace
}  // namespace muster::test
