#include "live/stream.h"

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/monotonic_now.h"
#include "server/watch/keeper.h"
#include "unit/core/group_driver.h"

// What viewers make of what they were told: each has the same, whenever he has asked.

namespace {

using namespace std::chrono_literals;
using namespace muster;
using core::ConnectionId;
using musterd::Json;
using musterd::Stream;

/// Keeps what it was told, as a page does.
struct Viewer {
  void take(const Stream::Piece& piece) {
    version = piece.version;
    if (piece.text.empty()) return;
    const std::string text(piece.text);
    const auto data = text.find("\ndata: ");
    REQUIRE(data != std::string::npos);
    REQUIRE(text.ends_with("\n\n"));
    REQUIRE(text.find('\n', data + 7) == text.size() - 2);  // the data is one line
    const Json message = Json::parse(text.substr(data + 7));
    const bool is_whole = text.starts_with("event: whole\n");
    ++(is_whole ? wholes : changes);
    if (is_whole) {
      groups.clear();
      events.clear();
    }
    for (const auto& [name, value] : message.items()) {
      if (name != "groups" && name != "gone" && name != "events") parts[name] = value;
    }
    for (const Json& group : message.value("groups", Json::array()))
      groups[group["namespace"].get<std::string>() + "/" + group["name"].get<std::string>()] =
          group;
    for (const Json& gone : message.value("gone", Json::array()))
      groups.erase(gone[0].get<std::string>() + "/" + gone[1].get<std::string>());
    for (const Json& event : message.value("events", Json::array())) {
      Json& known = events[event["serial"].get<std::uint64_t>()];
      known = event;
      known.erase("age_s");
    }
  }

  std::uint64_t version = 0;
  std::map<std::string, Json> groups;
  std::map<std::uint64_t, Json> events;
  std::map<std::string, Json> parts;
  int wholes = 0;
  int changes = 0;
};

struct Show {
  Show() { driver.now = start; }

  std::shared_ptr<server::Figures> figures() const {
    auto made = std::make_shared<server::Figures>();
    made->taken = wall_start + (driver.now - start);
    return made;
  }

  void turn() {
    driver.pass(500ms);
    keeper.tick(driver.engine.inspector(), driver.now, [this] { return figures(); });
    while (keeper.go_on(driver.engine.inspector(), driver.now)) {
    }
  }
  void tell(Viewer& viewer) { viewer.take(stream.next(viewer.version, {{"version", "0"}})); }
  void look(Viewer& viewer) {
    tell(viewer);
    turn();
    tell(viewer);
  }

  const base::Instant start = base::monotonic_now();
  const std::chrono::system_clock::time_point wall_start = std::chrono::system_clock::now();
  test::GroupDriver driver;
  std::shared_ptr<Watch::Source> source = std::make_shared<Watch::Source>();
  server::WatchKeeper keeper{source};
  Stream stream{Watch(source)};
};

/// Clients that do anything with some groups.
class Play {
 public:
  explicit Play(test::GroupDriver& driver) : driver_(driver) {}

  void step() {
    const std::string name = "g" + std::to_string(random_() % 6);
    const auto group = groups_.find(name);
    if (group == groups_.end()) return join(name);
    switch (random_() % 3) {
      case 0: return lose_one(group);
      case 1: return say_goodbye(group);
      default: return driver_.pass(1s);
    }
  }

 private:
  struct Group {
    std::vector<ConnectionId> ranks;
  };

  void join(const std::string& name) {
    const std::uint32_t size = 1 + static_cast<std::uint32_t>(random_() % 4);
    const bool is_whole = random_() % 3 != 0;
    const std::string name_space = random_() % 2 == 0 ? "" : "job";
    Group& group = groups_[name];
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      if (!is_whole && rank == 0 && size > 1) continue;
      group.ranks.push_back(driver_.connect(name_space));
      driver_.call(group.ranks.back(), wire::Join{name, rank, size, 1h, false, {}}, 1h);
    }
    driver_.effects.clear();
  }
  void lose_one(std::map<std::string, Group>::iterator group) {
    driver_.apply(core::Disconnected{group->second.ranks.back(), core::DisconnectCause::closed});
    group->second.ranks.pop_back();
    if (group->second.ranks.empty()) groups_.erase(group);
  }
  void say_goodbye(std::map<std::string, Group>::iterator group) {
    for (const ConnectionId rank : group->second.ranks) driver_.apply(core::Goodbye{rank});
    groups_.erase(group);
  }

  test::GroupDriver& driver_;
  std::mt19937 random_{7};
  std::map<std::string, Group> groups_;
};

}  // namespace

TEST_CASE("who comes later is told the time by then, also where nothing has changed") {
  Show show;
  show.driver.form(2);
  Viewer first;
  show.look(first);
  const auto before = first.parts["now"].get<std::int64_t>();
  for (int turn = 0; turn < 60; ++turn) {
    show.turn();
    show.tell(first);
  }
  Viewer second;
  show.tell(second);
  REQUIRE(second.wholes == 1);
  CHECK(second.parts["now"].get<std::int64_t>() - before >= 29'000);
  CHECK(second.parts["known_for_ms"].get<std::int64_t>() >= 29'000);
}

TEST_CASE("nothing is told before the server has told something") {
  Show show;
  Viewer viewer;
  show.tell(viewer);
  CHECK(viewer.version == 0);
  show.turn();
  show.tell(viewer);
  CHECK(viewer.wholes == 1);
  CHECK(viewer.parts.at("server")["version"] == "0");
}

TEST_CASE("as long as nothing differs nothing is told") {
  Show show;
  show.driver.form(3);
  Viewer viewer;
  show.look(viewer);
  for (int time = 0; time < 3; ++time) show.look(viewer);
  CHECK(viewer.wholes == 1);
  CHECK(viewer.changes == 0);
}

TEST_CASE("every viewer has the same, however seldom he reads, and as one who comes last") {
  Show show;
  Play play(show.driver);
  std::vector<Viewer> viewers(4);
  for (int step = 0; step < 400; ++step) {
    play.step();
    if (step % 3 == 0) show.look(viewers[0]);
    if (step % 7 == 0) show.tell(viewers[1]);
    if (step % 50 == 0) show.tell(viewers[2]);
  }
  Viewer last;
  show.look(last);
  for (Viewer& viewer : viewers) {
    show.tell(viewer);
    CHECK(viewer.version == last.version);
    CHECK(viewer.groups == last.groups);
    CHECK(viewer.parts.at("sessions") == last.parts.at("sessions"));
    CHECK(viewer.events == last.events);
    CHECK(viewer.wholes == 1);
  }
  CHECK(viewers[0].changes > 20);
}

TEST_CASE("who knows a version that was never told is told everything") {
  Show show;
  show.driver.form(3);
  Viewer viewer;
  show.look(viewer);
  viewer.version = 1'000'000;
  show.tell(viewer);
  CHECK(viewer.wholes == 2);
}

TEST_CASE("so many groups go that who was away is told everything") {
  Show show;
  Viewer viewer;
  show.look(viewer);
  for (int number = 0; number < 4200; ++number) {
    const ConnectionId rank = show.driver.connect(number < 2100 ? "" : "job");
    show.driver.call(rank, wire::Join{"g" + std::to_string(number), 0, 2, 1h, false, {}}, 1h);
  }
  Viewer other;
  show.look(other);
  CHECK(other.groups.size() == 4200);
  show.tell(viewer);
  CHECK(viewer.groups == other.groups);
  show.driver.pass(60s);  // nothing is heard of them
  show.look(other);
  CHECK(other.groups.empty());
  show.tell(viewer);
  CHECK(viewer.groups.empty());
}
