#include "server/peer/peers.h"

#include <algorithm>
#include <deque>
#include <map>

#include <doctest/doctest.h>

#include "server/peer/newcomers.h"
#include "support/allocations.h"
#include "unit/server/quiet_channel.h"

namespace {

using muster::core::Quota;
using muster::server::ConnectionEvents;
using muster::server::Newcomer;
using muster::server::Newcomers;
using muster::server::Peer;
using muster::server::Peers;
using muster::server::Unit;
using muster::server::UnitPlace;
using muster::server::Units;
namespace net = muster::net;

class NoEvents final : public ConnectionEvents {
 public:
  void received(Newcomer&, std::string_view) override {}
  void closed(Newcomer&, net::CloseCause, const std::string&) override {}
  void received(Peer&, std::string_view) override {}
  void closed(Peer&, net::CloseCause, const std::string&) override {}
  void drained(Peer&) override {}
  std::size_t readable_bytes(Peer&) override { return 0; }
};

TEST_CASE("that all peers go in one turn costs memory and time per peer") {
  constexpr std::size_t count = 4096;
  Quota quota(1U << 30);
  NoEvents events;
  Units units;
  Unit& unit = units.find_or_make({});
  Peers peers;
  const auto channel = std::make_shared<muster::server::QuietChannel>();
  for (std::size_t number = 0; number < count; ++number) {
    peers.add(events, channel, UnitPlace(unit), quota, {1024, 1024});
  }
  const auto all = peers.all();
  REQUIRE(all.size() == count);
  const auto bytes = muster::test::bytes_allocated_by([&] {
    for (Peer* const peer : all) peers.mark_gone(*peer);
  });
  CHECK(bytes < count * 100);
  CHECK(peers.count() == 0);
  CHECK(peers.find(all.front()->id) == nullptr);
  peers.bury();
  CHECK_FALSE(peers.has_gone());
}

/// A unit by the last part of its IPv4 address.
muster::net::UnitId number(std::uint64_t last) { return {muster::net::UnitId::Kind::ipv4, last}; }

struct Hall {
  Newcomer& come(std::uint64_t from) {
    return newcomers.add(events, channel, units.find_or_make(number(from)), {}, now);
  }

  muster::core::ConnectionLimits limits;
  NoEvents events;
  Units units;
  std::shared_ptr<net::Channel> channel = std::make_shared<muster::server::QuietChannel>();
  muster::base::Instant now{std::chrono::seconds(1000)};
  Newcomers newcomers{limits};
};

TEST_CASE("of too many newcomers the first one of the unit that has most is to go") {
  Hall hall;
  Newcomer& first = hall.come(1);
  Newcomer& second = hall.come(2);
  Newcomer& third = hall.come(2);
  Newcomer& fourth = hall.come(2);
  hall.come(3);
  CHECK(&hall.newcomers.first_of_fullest() == &second);
  hall.newcomers.take(second);
  CHECK(&hall.newcomers.first_of_fullest() == &third);
  hall.newcomers.take(third);
  CHECK(&hall.newcomers.first_of_fullest() != &fourth);  // all units have one: who came first
  hall.newcomers.take(first);
  CHECK(hall.newcomers.count() == 2);
}

TEST_CASE("which unit has most is right in any order, and costs the same with any number") {
  Hall hall;
  std::map<std::uint64_t, std::deque<Newcomer*>> here;
  std::uint64_t drawn = 1;
  for (int step = 0; step < 20'000; ++step) {
    drawn = drawn * 6364136223846793005 + 1442695040888963407;
    const std::uint64_t from = (drawn >> 33) % 7 * ((drawn >> 40) % 5);
    if ((drawn >> 60) < 9 || here.empty()) {
      here[from].push_back(&hall.come(from));
    } else {
      std::size_t most = 0;
      for (const auto& [unit, newcomers] : here) most = std::max(most, newcomers.size());
      Newcomer& one = hall.newcomers.first_of_fullest();
      auto& of_unit = here[one.unit->id.number];
      REQUIRE(of_unit.size() == most);
      REQUIRE(of_unit.front() == &one);
      of_unit.pop_front();
      if (of_unit.empty()) here.erase(one.unit->id.number);
      hall.newcomers.take(one);
    }
  }
}

TEST_CASE("a unit without connections is forgotten when there are many") {
  Units units;
  for (std::uint64_t last = 0; last < 10'000; ++last) UnitPlace(units.find_or_make(number(last)));
  CHECK(units.count() <= 257);
}

}  // namespace
