#include "muster/watch.h"

#include <algorithm>
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "base/monotonic_now.h"
#include "server/watch/keeper.h"
#include "unit/core/group_driver.h"

namespace {

using namespace std::chrono_literals;
using namespace muster;
using core::ConnectionId;
using test::GroupDriver;

/// An engine, and who looks at it.
struct Looking {
  Looking() { driver.now = start; }  // which those who look go by

  const base::Instant start = base::monotonic_now();
  const std::chrono::system_clock::time_point wall_start = std::chrono::system_clock::now();
  GroupDriver driver{[] {
    core::Options options;
    options.sessions_max = 20'000;
    return options;
  }()};
  std::shared_ptr<Watch::Source> source = std::make_shared<Watch::Source>();
  server::WatchKeeper keeper{source};
  Watch watch{source};

  std::shared_ptr<server::Figures> figures() const {
    auto made = std::make_shared<server::Figures>();
    made->taken = wall_start + (driver.now - start);
    return made;
  }
  /// Some turns of the thread that serves, half a second later.
  void turn(int pieces_max = 1000) {
    driver.pass(500ms);
    keeper.tick(driver.engine.inspector(), now(), [this] { return figures(); });
    for (int piece = 0; piece < pieces_max; ++piece) {
      if (!keeper.go_on(driver.engine.inspector(), now())) break;
    }
  }
  /// The driver's time, but never before the real time: Watch compares ages with the real time.
  base::Instant now() const { return std::max(driver.now, base::monotonic_now()); }
  std::shared_ptr<const Overview> look() {
    static_cast<void>(watch.overview({}));
    turn();
    return watch.overview({});
  }
  const GroupView& group(std::string_view name) {
    overview = look();
    REQUIRE(overview != nullptr);
    for (const auto& each : overview->groups) {
      if (each->name == name) return *each;
    }
    FAIL("there is no such group");
    return *overview->groups.front();
  }
  /// What is asked for by name, which takes some turns.
  template <class Ask>
  auto ask(const Ask& call) {
    static_cast<void>(call());
    for (int time = 0; time < 100; ++time) {
      turn();
      auto result = call();
      if (result.has_value() || result.error().code != ErrorCode::unavailable) return result;
    }
    return call();
  }

  std::shared_ptr<const Overview> overview;
};

using Runs = std::vector<std::pair<RankCondition, int>>;

wire::Join join_of(std::string_view name, std::uint32_t rank, std::uint32_t size) {
  return {name, rank, size, 1h, false, {}};
}

}  // namespace

TEST_CASE("nothing is done for those who do not look") {
  Looking looking;
  looking.driver.form(4);
  looking.turn();
  CHECK_FALSE(looking.keeper.is_watched(looking.driver.now));
  CHECK(looking.source->publisher.latest() == nullptr);
}

TEST_CASE("a group that forms tells who is there and who is missing") {
  Looking looking;
  auto& driver = looking.driver;
  driver.call(driver.connect(), join_of("late", 1, 4));
  driver.call(driver.connect(), join_of("late", 2, 4));
  const GroupView& group = looking.group("late");
  CHECK(group.state == GroupCondition::forming);
  CHECK(group.epoch == 0);
  CHECK(group.ranks ==
        Runs{{RankCondition::absent, 1}, {RankCondition::waiting, 2}, {RankCondition::absent, 1}});
  CHECK(group.waits_for == std::vector<RankRange>{{0, 0}, {3, 3}});
  CHECK(group.waiting == std::vector<RankRange>{{1, 2}});
}

TEST_CASE("a group that works looks the same all the time, and is the same object") {
  Looking looking;
  const auto ranks = looking.driver.form(3);
  const auto before = looking.look();
  REQUIRE(before->groups.size() == 1);
  CHECK(before->groups[0]->state == GroupCondition::working);
  for (std::uint64_t round = 1; round <= 5; ++round) {
    for (const ConnectionId rank : ranks) looking.driver.barrier(rank, round);
    looking.driver.acknowledge_all();
    const auto now = looking.look();
    CHECK(now->number > before->number);
    CHECK(now->groups[0] == before->groups[0]);
  }
}

TEST_CASE("of all groups of a namespace those are told in which somebody waits") {
  Looking looking;
  auto& driver = looking.driver;
  const auto idle = driver.form(2, "idle");
  const auto in_round = driver.form(2, "round");
  driver.barrier(in_round[0], 1);
  const auto spare = driver.form(2, "spare");
  driver.call(driver.connect(), join_of("forming", 0, 2));
  driver.call(driver.connect(), wire::Join{"spare", 2, 3, 1h, true, {}});
  const auto reports =
      looking.ask([&] { return looking.watch.waiting_groups({}, Duration::zero()); });
  REQUIRE(reports);
  std::vector<std::string> names;
  for (const GroupReport& report : *reports) names.push_back(report.name);
  CHECK(names == std::vector<std::string>{"forming", "round", "spare"});
  REQUIRE(reports->at(1).round);
  CHECK(reports->at(1).round->missing == std::vector<RankRange>{{1, 1}});
  CHECK(reports->at(2).candidates.size() == 1);
}

TEST_CASE("a round that is open for more than a second tells who is waited for") {
  Looking looking;
  const auto ranks = looking.driver.form(4);
  for (const std::size_t rank : {0U, 2U}) looking.driver.barrier(ranks[rank], 1);
  CHECK(looking.group("g").state == GroupCondition::working);
  looking.driver.pass(1s);
  const GroupView& group = looking.group("g");
  CHECK(group.state == GroupCondition::waiting);
  CHECK(group.call == "barrier");
  CHECK(group.round == 1);
  CHECK(group.waits_for == std::vector<RankRange>{{1, 1}, {3, 3}});
  CHECK(group.ranks == Runs{{RankCondition::waiting, 1},
                            {RankCondition::missing, 1},
                            {RankCondition::waiting, 1},
                            {RankCondition::missing, 1}});
  REQUIRE(group.told.size() == 2);
  CHECK(group.told[0].rank == 1);
  CHECK(group.told[0].process.host == "host");
  const auto since = group.since;
  looking.driver.pass(5s);
  CHECK(looking.group("g").since == since);
}

TEST_CASE("a loss is a failure until the others regroup") {
  Looking looking;
  const auto ranks = looking.driver.form(3);
  looking.driver.apply(core::Disconnected{ranks[1], core::DisconnectCause::closed});
  CHECK(looking.group("g").ranks[1].first == RankCondition::away);
  looking.driver.pass(10s);
  const GroupView& group = looking.group("g");
  CHECK(group.state == GroupCondition::failed);
  CHECK(group.ranks[1].first == RankCondition::lost);
  REQUIRE(group.failure);
  CHECK(group.failure->code == ErrorCode::rank_lost);
  looking.driver.call(ranks[0], wire::Regroup{looking.driver.epoch, 1, 1, 0, 0});
  CHECK(looking.group("g").state == GroupCondition::regrouping);
  CHECK(looking.group("g").waits_for == std::vector<RankRange>{{2, 2}});
  looking.driver.call(ranks[2], wire::Regroup{looking.driver.epoch, 1, 1, 0, 0});
  CHECK(looking.group("g").state == GroupCondition::working);
  CHECK_FALSE(looking.group("g").failure);
}

TEST_CASE("a round that fails is a failure until one succeeds") {
  Looking looking;
  const auto ranks = looking.driver.form(2);
  looking.driver.barrier(ranks[0], 1, 2s);
  looking.driver.pass(3s);
  const GroupView& group = looking.group("g");
  CHECK(group.state == GroupCondition::failed);
  REQUIRE(group.failure);
  CHECK(group.failure->code == ErrorCode::timed_out);
  looking.driver.barrier(ranks[1], 1);
  for (const ConnectionId rank : ranks) looking.driver.barrier(rank, 2);
  CHECK(looking.group("g").state == GroupCondition::working);
}

TEST_CASE("what happens to groups is told once, and again when it happens once more") {
  Looking looking;
  const auto ranks = looking.driver.form(20);
  static_cast<void>(looking.look());
  const auto first = looking.watch.events(0, 100);
  REQUIRE(first.size() == 1);
  CHECK(first[0]->event.what == GroupEventKind::formed);
  const std::uint64_t known = first[0]->change;
  for (std::size_t rank = 0; rank < 3; ++rank)
    looking.driver.apply(core::Disconnected{ranks[rank], core::DisconnectCause::closed});
  looking.driver.pass(10s);
  static_cast<void>(looking.look());
  const auto lost = looking.watch.events(known, 100);
  REQUIRE(lost.size() == 1);
  CHECK(lost[0]->event.what == GroupEventKind::rank_lost);
  CHECK(lost[0]->event.count == 3);
  CHECK(lost[0]->event.error->ranks.size() == 3);
  CHECK(looking.watch.events(lost[0]->change, 100).empty());
  CHECK(looking.watch.events(0, 1)[0] == lost[0]);
}

TEST_CASE("lists are those of operators who may see everything, page by page") {
  Looking looking;
  for (int count = 0; count < 2000; ++count) looking.driver.connect("many");
  looking.driver.form(std::vector<ConnectionId>{looking.driver.connect("other")}, "g");
  const auto sessions = looking.ask([&] { return looking.watch.sessions("many", {}); });
  REQUIRE(sessions.has_value());
  CHECK(sessions->size() == 2000);
  CHECK(looking.watch.sessions("many", {}).has_value());  // they are fresh
  const auto names = looking.ask([&] { return looking.watch.namespaces({}); });
  REQUIRE(names.has_value());
  CHECK(names->size() == 2);
  const auto groups = looking.ask([&] { return looking.watch.all_groups({}); });
  REQUIRE(groups.has_value());
  REQUIRE(groups->size() == 1);
  CHECK(groups->front().first == "other");
  CHECK(looking.ask([&] { return looking.watch.sessions("none", {}); }).error().code ==
        ErrorCode::not_found);
  CHECK(looking.ask([&] { return looking.watch.group("other", "none", {}); }).error().code ==
        ErrorCode::not_found);
  CHECK(looking.ask([&] { return looking.watch.group("other", "g", {}); })->members.size() == 1);
}

TEST_CASE("no turn does more than a few pieces, and half a second not more than some") {
  Looking looking;
  for (int count = 0; count < 10'000; ++count) looking.driver.connect("many");
  static_cast<void>(looking.watch.sessions("many", {}));
  looking.turn(1);
  CHECK_FALSE(looking.watch.sessions("many", {}).has_value());
  int turns = 1;
  while (!looking.watch.sessions("many", {}).has_value()) {
    looking.keeper.go_on(looking.driver.engine.inspector(), looking.now());
    REQUIRE(++turns < 100);
  }
  CHECK(turns >= 3);
}

TEST_CASE("how many look at how much is limited") {
  Looking looking;
  for (int number = 0; number < 200; ++number)
    static_cast<void>(looking.watch.groups("n" + std::to_string(number), {}));
  for (int time = 0; time < 20; ++time) looking.turn();
  int answered = 0;
  for (int number = 0; number < 200; ++number) {
    const auto groups = looking.watch.groups("n" + std::to_string(number), {});
    if (!groups.has_value() && groups.error().code == ErrorCode::not_found) ++answered;
  }
  CHECK(answered <= 64);
}

TEST_CASE("many groups are looked at in pieces, and all are there") {
  Looking looking;
  for (int number = 0; number < 60; ++number) {
    std::vector<ConnectionId> ranks;
    for (int rank = 0; rank < 40; ++rank)
      ranks.push_back(looking.driver.connect("n" + std::to_string(number % 7)));
    looking.driver.form(ranks, "g" + std::to_string(number));
  }
  core::Glances glances;
  int pieces = 0;
  for (; !glances.is_done; ++pieces) looking.driver.engine.inspector().go_on(glances, 100);
  CHECK(pieces > 20);
  REQUIRE(glances.groups.size() == 60);
  for (std::size_t at = 1; at < glances.groups.size(); ++at) {
    const auto& before = glances.groups[at - 1];
    const auto& group = glances.groups[at];
    CHECK(std::tie(before.name_space, before.name) < std::tie(group.name_space, group.name));
  }
  CHECK(looking.look()->groups.size() == 60);
}

TEST_CASE("more ranks than a piece holds are told of at once, when all were looked at") {
  Looking looking;
  for (int number = 0; number < 3; ++number) {
    std::vector<ConnectionId> ranks;
    for (int rank = 0; rank < 5000; ++rank) ranks.push_back(looking.driver.connect());
    looking.driver.form(ranks, "g" + std::to_string(number));
  }
  looking.driver.form(2000, "last");
  static_cast<void>(looking.watch.overview({}));
  looking.turn(1);
  CHECK(looking.watch.overview({}) == nullptr);
  looking.turn();
  REQUIRE(looking.watch.overview({}) != nullptr);
  CHECK(looking.watch.overview({})->groups.size() == 4);
}

TEST_CASE("keys are counted by prefix, however many there are") {
  Looking looking;
  const ConnectionId client = looking.driver.connect();
  const auto set = [&](const std::string& key) {
    looking.driver.ask(client, wire::Set{key, "12345", {}, {}});
    looking.driver.acknowledge_all();
  };
  for (int number = 0; number < 3000; ++number) set("p" + std::to_string(number) + "/a");
  for (int number = 0; number < 10; ++number) set("same/" + std::to_string(number));
  const auto prefixes = looking.ask([&] { return looking.watch.prefixes("", 1, {}); });
  REQUIRE(prefixes.has_value());
  CHECK(prefixes->prefixes.size() == 256);
  std::uint64_t keys = prefixes->other_keys;
  for (const KeyPrefix& each : prefixes->prefixes) keys += each.keys;
  CHECK(keys == 3010);
}

TEST_CASE("nothing is told of a server that is gone") {
  Looking looking;
  looking.driver.form(2);
  static_cast<void>(looking.look());
  looking.keeper.close();
  CHECK(looking.watch.overview({}) == nullptr);
  CHECK(looking.watch.sessions("", {}).error().code == ErrorCode::unavailable);
}
