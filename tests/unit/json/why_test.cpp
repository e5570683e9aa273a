#include "json/why.h"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

// What a group's report says of who waits for whom.

namespace muster::json {
namespace {

using namespace std::chrono_literals;

bool tells(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

GroupReport formed() {
  GroupReport report;
  report.name = "job";
  report.epoch = 3;
  report.world_size = 2;
  report.members.resize(2);
  report.members[1].rank = 1;
  return report;
}

TEST_CASE("a name in quotes ends where it ends, and hides nothing") {
  GroupReport report = formed();
  report.name = "a\"b\\\u200b\u202e\n";
  const std::string name = "group \"a\\\"b\\\\\\u200b\\u202e\\x0a\": ";
  CHECK(tells(explain(report, 10s), name + "epoch 3"));
  report.epoch = 0;
  CHECK(tells(explain(report, 10s), name + "forms"));
}

TEST_CASE("a group hangs where somebody is held up, and not where a spare process is idle") {
  GroupReport report = formed();
  CHECK_FALSE(has_waiters(report));
  WaitingCandidate spare;
  spare.standby = true;
  spare.age = 1h;
  report.candidates.push_back(spare);
  CHECK(has_waiters(report));
  CHECK_FALSE(held_up_for(report).has_value());
  CHECK_FALSE(hangs(report, 10s));
  CHECK(tells(explain(report, 10s), "nobody is held up"));

  report.candidates.push_back({});
  report.candidates.back().age = 20s;
  CHECK(held_up_for(report) == Duration(20s));
  CHECK(hangs(report, 20s));
  CHECK_FALSE(hangs(report, 21s));
  CHECK(tells(explain(report, 20s), "it hangs: somebody is held up for 20.0 s"));
  CHECK(tells(explain(report, 30s), "it hangs from 30.0 s on"));
}

TEST_CASE("of what holds others up the oldest counts") {
  GroupReport report = formed();
  report.round.emplace().age = 3s;
  report.confirming.emplace().age = 5s;
  report.regroup.emplace().age = 4s;
  CHECK(held_up_for(report) == Duration(5s));
  GroupReport forming;
  forming.age = 7s;
  CHECK(held_up_for(forming) == Duration(7s));
}

TEST_CASE("of a rank that is waited for and gone it is told that nobody takes its place") {
  GroupReport report = formed();
  WaitingRegroup& regroup = report.regroup.emplace();
  regroup.new_size = 2;
  regroup.called = {{0, 0}};
  regroup.missing = {{1, 1}};
  CHECK_FALSE(tells(explain(report, 10s), "no candidate that fits is there"));
  report.members[1].state = MemberState::lost;
  CHECK(tells(explain(report, 10s), "lost, it was silent for 0 ms; no candidate that fits"));
  report.members.pop_back();
  CHECK(tells(explain(report, 10s), "rank 1 (no candidate that fits is there)"));
}

TEST_CASE("of a member without a handle it is told that its process has none") {
  GroupReport report = formed();
  report.unheld = {{1, 1}};
  const std::string said = "its process holds no handle of this group";
  CHECK(tells(explain(report, 10s), said));
  report.round = WaitingRound{};
  report.round->missing = {{1, 1}};
  CHECK(tells(explain(report, 10s), said));
  report.unheld.clear();
  CHECK_FALSE(tells(explain(report, 10s), said));
}

TEST_CASE("a wait has a deadline, or none where it is as long as there is") {
  WaiterInfo waiter;
  waiter.operation = "get";
  waiter.target = "a\x01";
  waiter.age = 1s;
  waiter.left = 2s;
  CHECK(explain(waiter) == "host  waits for 1.0 s in get: a\\x01 (2.0 s left)");
  waiter.left = Duration(24h * 30) - waiter.age;
  CHECK(explain(waiter) == "host  waits for 1.0 s in get: a\\x01 (without a deadline)");
}

}  // namespace
}  // namespace muster::json
