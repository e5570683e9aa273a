#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "musterctl.h"
#include "support/frame_proxy.h"
#include "support/ranks.h"

// Waits that are no plain missing call: whoever waits in a group is told of by `musterctl why`,
// with what it waits for.

namespace muster::test {
namespace {

using Json = nlohmann::json;
using Group = StatelessProcessGroup;

/// How calls ended that a test does not look at: it says so where it fails. May outlive the test.
class Endings {
 public:
  /// A handler for the call of that name.
  auto of(std::string call) const {
    return [state = state_, call = std::move(call)](const auto& result) {
      const std::lock_guard lock(state->mutex);
      state->text += call + ": " + (result ? "done" : result.error().message()) + "; ";
    };
  }
  std::string text() const {
    const std::lock_guard lock(state_->mutex);
    return state_->text;
  }

 private:
  struct State {
    std::mutex mutex;
    std::string text;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// Three ranks of group "g", the last of them behind a proxy.
struct HangBehindProxy {
  Musterctl musterctl;
  FrameProxy proxy{musterctl.address()};
  std::vector<Store> stores;
  std::vector<Group> groups;
  Endings endings;

  HangBehindProxy() {
    for (int rank = 0; rank < 3; ++rank) {
      stores.push_back(connect(rank == 2 ? proxy.address() : musterctl.address()));
    }
    std::vector<std::promise<Result<Group>>> joined(3);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      Group::create_async(
          stores[rank], "g", static_cast<int>(rank), 3, patience(),
          [&, rank](Result<Group> group) { joined[rank].set_value(std::move(group)); });
    }
    for (auto& each : joined) groups.push_back(must(each.get_future().get()));
  }
  ~HangBehindProxy() {
    for (Store& store : stores) store.cancel();
  }

  Json ask(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "--json");
    return Json::parse(musterctl(arguments).output);
  }

  /// What `why` says of the group as soon as `holds(document)`.
  template <class Holds>
  Json await_told(Holds holds) const {
    Json document;
    const bool is_told = holds_soon([&] { return holds(document = ask({"why", "g"})); });
    INFO("told at last: ", document.dump());
    INFO("calls that have ended: ", endings.text());
    REQUIRE(is_told);
    return document;
  }

  /// The same; then somebody waits, and is told of as waiting.
  template <class Holds>
  Json why(Holds holds) const {
    Json document = await_told(holds);
    CHECK_FALSE(ask({"waiters"}).empty());
    CHECK(document["waits"] == true);
    CHECK(ask({"why"})["groups"].size() == 1);
    return document;
  }
};

TEST_CASE("a barrier that is decided: who waits, and who has not confirmed it") {
  HangBehindProxy hang;
  hang.groups[2].barrier_async(20s, hang.endings.of("barrier of rank 2"));
  await([&] { return hang.ask({"waiters"}).size() == 1; });
  hang.proxy.pause();
  hang.groups[1].barrier_async(20s, hang.endings.of("barrier of rank 1"));
  std::promise<Result<BarrierResult>> passed;
  hang.groups[0].barrier_async(20s, [&](auto result) { passed.set_value(std::move(result)); });
  const Json document = hang.why([](const Json& found) {
    return found.contains("confirming") && found["confirming"]["missing"] == Json::array({2});
  });
  CHECK_FALSE(document.contains("round"));
  CHECK(document["confirming"]["number"] == 1);
  CHECK(document["confirming"]["call"] == "barrier");
  CHECK(document["confirming"]["called"] == Json::array({0}));
  CHECK(hang.ask({"groups"})[0]["round"] == 1);
  hang.proxy.resume();
  CHECK(must(passed.get_future().get()).unconfirmed.empty());
}

TEST_CASE("a member whose connection is closed is told of as that before it is lost") {
  HangBehindProxy hang;
  hang.groups[0].barrier_async(20s, hang.endings.of("barrier of rank 0"));
  hang.proxy.pause();
  hang.proxy.cut();
  const Json document = hang.why([](const Json& found) {
    return found["members"][2]["state"] == "away" && found.contains("round");
  });
  CHECK(document["round"]["called"] == Json::array({0}));
  CHECK(document["round"]["missing"] == Json::array({1, 2}));
  hang.proxy.resume();
}

TEST_CASE("a standby is told of as waiting for a regroup") {
  HangBehindProxy hang;
  Store spare = connect(hang.musterctl.address());
  GroupOptions options = patience();
  options.standby = true;
  Group::create_async(spare, "g", 3, 4, options, hang.endings.of("join of the standby"));
  const Json document = hang.why([](const Json& found) { return !found["candidates"].empty(); });
  CHECK(document["members"].size() == 3);
  REQUIRE(document["candidates"].size() == 1);
  CHECK(document["candidates"][0]["rank"] == 3);
  CHECK(document["candidates"][0]["world_size"] == 4);
  CHECK(document["candidates"][0]["standby"] == true);
  CHECK(document["candidates"][0]["waits_for"] == "regroup");
  CHECK(document["candidates"][0]["left_s"] > 0);
}

TEST_CASE("who comes as a rank that is lost waits for a regroup") {
  HangBehindProxy hang;
  hang.proxy.pause();
  hang.proxy.cut();
  Store other = connect(hang.musterctl.address());
  hang.await_told([](const Json& found) { return found["members"][2]["state"] == "lost"; });
  Group::create_async(other, "g", 2, 3, patience(), hang.endings.of("join as rank 2"));
  Json document = hang.why([](const Json& found) { return !found["candidates"].empty(); });
  CHECK(document["members"][2]["state"] == "lost");
  CHECK(document["candidates"][0]["rank"] == 2);
  CHECK(document["candidates"][0]["waits_for"] == "regroup");
  other.cancel();
  // It ends at once, and the server hears of it later: a regroup that comes between would fail.
  hang.await_told([](const Json& found) { return found["candidates"].empty(); });

  // A regroup to the old size waits for the other member and for a candidate.
  RegroupOptions to_three;
  to_three.new_size = 3;
  hang.groups[0].regroup_async(to_three, 20s, hang.endings.of("regroup"));
  document = hang.why([](const Json& found) { return found.contains("regroup"); });
  CHECK(document["regroup"]["missing"] == Json::array({1, 2}));
}

}  // namespace
}  // namespace muster::test
