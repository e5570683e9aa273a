#include <future>
#include <memory>
#include <mutex>
#include <optional>

#include "muster/codec_cereal.h"
#include "muster/inspect.h"
#include "support/frame_proxy.h"
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

/// A rank whose answers can be held back, and one that hears everything; what it does not hold, it
/// waits for in vain.
struct Doubtful {
  static ServerOptions with_short_grace() {
    ServerOptions options;
    options.grace = 200ms;
    return options;
  }

  Server server = start_disturbed_server(with_short_grace());
  FrameProxy proxy{server.addresses().front()};
  Store store = connect(proxy.address());
  Store other = connect(server);

  /// A join as rank 0 whose group has formed, of which this process has not heard.
  Call join_in_doubt(Handler<Group> handler, Duration timeout = 20s, std::uint64_t waits = 1) {
    Call call = Group::create_async(store, "g", 0, 2, patience(timeout), std::move(handler));
    await([&] { return held_count(other, "waits") == waits; });
    proxy.pause();
    group_.emplace(join(other, "g", 1, 2));
    return call;
  }
  /// Twice, as the server counts: by a wait that it ends.
  void let_grace_pass() {
    CHECK(must_fail(other.get("nothing", 2 * with_short_grace().grace)).code ==
          ErrorCode::timed_out);
  }
  void check_that_rank_0_leaves() {
    const Error error = must_fail(group_->barrier());
    CHECK(error.code == ErrorCode::rank_left);
    CHECK(error.rank_ranges == std::vector<RankRange>{{0, 0}});
  }

  std::optional<Group> group_;  ///< of rank 1
};

TEST_CASE_FIXTURE(Doubtful, "a rank whose create is cancelled as its group forms leaves it") {
  std::promise<ErrorCode> ended;
  Call call =
      join_in_doubt([&](const Result<Group>& result) { ended.set_value(must_fail(result).code); });
  call.cancel();
  CHECK(ended.get_future().get() == ErrorCode::cancelled);
  proxy.resume();
  check_that_rank_0_leaves();
}

TEST_CASE_FIXTURE(Doubtful, "a rank whose create is in doubt by its deadline leaves the group") {
  std::promise<ErrorCode> ended;
  join_in_doubt([&](const Result<Group>& result) { ended.set_value(must_fail(result).code); }, 2s);
  CHECK(ended.get_future().get() == ErrorCode::outcome_unknown);
  proxy.resume();
  check_that_rank_0_leaves();
}

TEST_CASE_FIXTURE(Doubtful, "a rank whose store is closed while its group forms leaves it") {
  std::promise<ErrorCode> ended;
  join_in_doubt([&](const Result<Group>& result) { ended.set_value(must_fail(result).code); });
  store.close();
  CHECK(ended.get_future().get() == ErrorCode::closed);
  proxy.resume();
  check_that_rank_0_leaves();
}

TEST_CASE_FIXTURE(Doubtful, "a rank that does not take the handle that it is given leaves") {
  join_in_doubt([](const Result<Group>& result) { CHECK(result.has_value()); });
  proxy.resume();
  check_that_rank_0_leaves();
}

TEST_CASE_FIXTURE(Doubtful, "a rank that creates again in time is a member") {
  std::promise<ErrorCode> ended;
  Call call =
      join_in_doubt([&](const Result<Group>& result) { ended.set_value(must_fail(result).code); });
  call.cancel();
  CHECK(ended.get_future().get() == ErrorCode::cancelled);
  auto again = std::async(std::launch::async, [&] { return join(store, "g", 0, 2); });
  proxy.resume();
  auto group = again.get();
  CHECK(group.epoch() == group_->epoch());
  let_grace_pass();
  auto other_side = std::async(std::launch::async, [&] { return group_->barrier(); });
  must(group.barrier());
  must(other_side.get());
}

TEST_CASE_FIXTURE(Doubtful, "of two creates on one store one has the handle, and it stays") {
  std::promise<Result<Group>> first, second;
  const auto into = [](std::promise<Result<Group>>& promise) {
    return [&promise](Result<Group> result) { promise.set_value(std::move(result)); };
  };
  Group::create_async(store, "g", 0, 2, patience(), into(first));
  Call call = join_in_doubt(into(second), 20s, 2);
  call.cancel();
  CHECK(must_fail(second.get_future().get()).code == ErrorCode::cancelled);
  proxy.resume();
  auto group = must(first.get_future().get());
  let_grace_pass();
  auto other_side = std::async(std::launch::async, [&] { return group_->barrier(); });
  must(group.barrier());
  must(other_side.get());
}

TEST_CASE_FIXTURE(Doubtful, "a rank whose create was given up as its answer came leaves") {
  StoreOptions options;
  options.handlers = HandlerPlace::io_thread;
  auto stalled = connect(proxy.address(), options);
  std::promise<void> inside, released;
  stalled.get_async("k", 20s, [&](const Result<std::string>&) {
    inside.set_value();
    released.get_future().wait();
  });
  auto created = std::async(std::launch::async, [&] {
    return must_fail(Group::create(stalled, "g", 0, 2, patience(500ms))).code;
  });
  await([&] { return held_count(other, "waits") == 2; });
  proxy.pause();
  must(other.set("k", ""));
  group_.emplace(join(other, "g", 1, 2));
  proxy.resume();  // both answers at once
  inside.get_future().wait();
  CHECK(created.get() == ErrorCode::outcome_unknown);
  released.set_value();
  check_that_rank_0_leaves();
}

TEST_CASE("a handle that goes while its store is disconnected leaves when that is back") {
  ServerOptions options;
  options.grace = 10s;
  Server server = start_disturbed_server(options);
  FrameProxy proxy(server.addresses().front());
  auto store = connect(proxy.address());
  auto other = connect(server);
  auto joined = std::async(std::launch::async, [&] { return join(store, "g", 0, 2); });
  auto rest = join(other, "g", 1, 2);
  std::optional<Group> group = joined.get();
  proxy.pause();
  proxy.cut();
  await([&] { return must(inspect_group(other, "g")).members[0].state == MemberState::away; });
  group.reset();
  CHECK(must_fail(other.get("nothing", 1s)).code == ErrorCode::timed_out);
  proxy.resume();
  const Error error = must_fail(rest.barrier());
  CHECK(error.code == ErrorCode::rank_left);
  CHECK(error.rank_ranges == std::vector<RankRange>{{0, 0}});
  must(store.set("k", ""));  // in the same session
}

TEST_CASE_FIXTURE(Doubtful,
                  "a handle that goes while its regroup is in doubt leaves what it led to") {
  std::promise<Group> joined;
  join_in_doubt([&](Result<Group> result) { joined.set_value(must(std::move(result))); });
  proxy.resume();
  std::optional<Group> group = joined.get_future().get();
  std::promise<ErrorCode> ended;
  group->regroup_async(
      {}, 20s, [&](const Result<Group>& result) { ended.set_value(must_fail(result).code); });
  await([&] { return held_count(other, "waits") == 1; });
  proxy.pause();
  group_.emplace(must(group_->regroup()));
  group.reset();
  proxy.resume();
  CHECK(ended.get_future().get() == ErrorCode::closed);
  check_that_rank_0_leaves();
}

}  // namespace
}  // namespace muster::test
