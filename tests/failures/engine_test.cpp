#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "failing_calls.h"
#include "unit/core/engine_driver.h"

// Memory that is out in the midst of an event: the engine cannot be trusted then, and its owner
// ends it. It has to go without touching what is gone already.

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

using Step = std::function<void(EngineDriver&)>;

/// So that a story is told again from any point: clients have their numbers by the order in which
/// they come.
constexpr core::ConnectionId setter = 1;

/// The codes of all replies when nothing fails.
std::vector<std::uint16_t> told_in(const core::Options& options, const std::vector<Step>& story) {
  EngineDriver driver(options);
  for (const Step& step : story) step(driver);
  std::vector<std::uint16_t> codes;
  for (const core::Effect& effect : driver.effects) {
    if (const auto* const reply = std::get_if<core::SendReply>(&effect))
      codes.push_back(reply->code);
  }
  return codes;
}

/// Each allocation of each step fails once.
///
/// returns  how many there were
std::uint64_t fail_each_once(const core::Options& options, const std::vector<Step>& story) {
  std::uint64_t count = 0;
  for (std::size_t failing = 0; failing < story.size(); ++failing) {
    for (std::uint64_t which = 1;; ++which, ++count) {
      EngineDriver driver(options);
      for (std::size_t step = 0; step < failing; ++step) story[step](driver);
      begin_failing({Fails::allocation, which});
      try {
        story[failing](driver);
      } catch (const std::bad_alloc&) {
      }
      if (!end_failing().has_failed) break;
    }
  }
  return count;
}

Step comes() {
  return [](EngineDriver& driver) { driver.connect(); };
}

template <class Body>
Step asks(core::ConnectionId who, Body body, Duration timeout = 60s) {
  return [who, body, timeout](EngineDriver& driver) { driver.ask(who, body, timeout); };
}

Step joins(core::ConnectionId who, std::uint32_t rank, std::uint32_t size) {
  wire::Join join;
  join.group = "g";
  join.rank = rank;
  join.world_size = size;
  return asks(who, join);
}

Step goes(core::ConnectionId who) {
  return [who](EngineDriver& driver) { driver.apply(core::Disconnected{who}); };
}

Step passes(Duration time) {
  return [time](EngineDriver& driver) { driver.pass(time); };
}

/// Waits of all kinds for "k", some of them also for "l", and both come.
std::vector<Step> story_of_keys(core::ConnectionId readers_count) {
  std::vector<Step> story{comes()};
  core::ConnectionId next = setter;
  for (core::ConnectionId reader = 0; reader < readers_count; ++reader) {
    story.push_back(comes());
    story.push_back(asks(++next, wire::Get{"k"}));
  }
  for (const Step& ask : {asks(next + 1, wire::Wait{{"k"}}), asks(next + 2, wire::Wait{{"k", "l"}}),
                          asks(next + 3, wire::Get{"l"}), asks(next + 4, wire::Take{"k"}),
                          asks(next + 5, wire::Get{"k"})}) {
    story.push_back(comes());
    story.push_back(ask);
  }
  story.push_back(asks(setter, wire::MultiSet{{{"k", "of k"}, {"l", "of l"}}, {}}));
  return story;
}

}  // namespace

TEST_CASE("an engine whose memory was out as keys came can be ended") {
  const std::vector<Step> story = story_of_keys(3);
  CHECK(told_in({}, story) == std::vector<std::uint16_t>(9));  // all who wait, and who sets
  CHECK(fail_each_once({}, story) > 50);
}

TEST_CASE("the same where those who wait are told by later events") {
  core::Options options;
  options.work_per_event_max = 8;
  const std::vector<Step> story = story_of_keys(30);
  CHECK(told_in(options, story) == std::vector<std::uint16_t>(36));
  CHECK(fail_each_once(options, story) > 50);
}

TEST_CASE("the same of a group that forms, and whose ranks call, send, die and regroup") {
  const std::string value(1000, 'v');
  wire::Regroup regroup;
  regroup.epoch = 1;
  regroup.attempt = 1;
  regroup.next_round = 4;
  const std::vector<Step> story = {
      comes(),
      comes(),
      comes(),
      joins(1, 0, 3),
      joins(2, 1, 3),
      joins(3, 2, 3),
      asks(1, wire::CollectiveCall{1, 1, wire::Collective::all_gather, 0, 0, {value}}),
      asks(2, wire::CollectiveCall{1, 1, wire::Collective::all_gather, 0, 0, {value}}),
      asks(3, wire::CollectiveCall{1, 1, wire::Collective::all_gather, 0, 0, {value}}),
      asks(1, wire::CollectiveCall{1, 2, wire::Collective::broadcast, 0, 0, {value}}),
      asks(2, wire::Receive{1, 0, 7, 0, 0}),
      asks(1, wire::Send{1, 1, 7, 0, 0, value}),
      asks(1, wire::CollectiveCall{1, 3, wire::Collective::barrier, 0, 0, {}}),
      goes(3),
      passes(5s),  // more than the grace, and less than the others may be silent for
      asks(1, regroup),
      asks(2, regroup),
      asks(1, wire::History{"g", 0}),
      asks(1, wire::Leave{2}),
  };
  // Three join; one all_gather of three, a broadcast's root, an object sent and received, the
  // barrier that breaks, two regroup, one looks back and leaves.
  std::vector<std::uint16_t> told(14);
  told.at(9) = static_cast<std::uint16_t>(ErrorCode::rank_lost);
  CHECK(told_in({}, story) == told);
  CHECK(fail_each_once({}, story) > 100);
}
