#include "server/door/handshakes.h"

#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include "server/peer/newcomers.h"
#include "unit/server/quiet_channel.h"

namespace {

using namespace std::chrono_literals;
using muster::server::Arrival;
using muster::server::Handshakes;
using muster::server::Newcomer;
using muster::server::Newcomers;
using muster::server::Unit;
using muster::server::Units;
namespace base = muster::base;

class NothingHappens final : public muster::server::ConnectionEvents {
 public:
  void received(Newcomer&, std::string_view) override {}
  void closed(Newcomer&, muster::net::CloseCause, const std::string&) override {}
  void received(muster::server::Peer&, std::string_view) override {}
  void closed(muster::server::Peer&, muster::net::CloseCause, const std::string&) override {}
  void drained(muster::server::Peer&) override {}
  std::size_t readable_bytes(muster::server::Peer&) override { return 0; }
};

/// Newcomers whose first flight is there, by the last part of their address.
struct AtDoor {
  Newcomer& come(std::uint64_t last) {
    Unit& unit = units.find_or_make({muster::net::UnitId::Kind::ipv4, last});
    Newcomer& newcomer = newcomers.add(events, channel, unit, {Arrival::Kind::tls, {}}, now);
    handshakes.add(newcomer);
    return newcomer;
  }
  void go(Newcomer& newcomer) {
    handshakes.leave(newcomer);
    newcomers.take(newcomer);
  }

  base::Instant now{1h};
  NothingHappens events;
  std::shared_ptr<muster::server::QuietChannel> channel =
      std::make_shared<muster::server::QuietChannel>();
  Units units;
  muster::core::ConnectionLimits limits;
  Handshakes handshakes;
  Newcomers newcomers{limits};
};

TEST_CASE("handshakes begin by addresses in turn, and of each address in order") {
  AtDoor door;
  CHECK_FALSE(door.handshakes.has_waiting());
  CHECK(door.handshakes.next_time(door.now) == base::far_future);
  Newcomer& first = door.come(1);
  Newcomer& second = door.come(1);
  Newcomer& other = door.come(2);
  CHECK(door.handshakes.take_next(door.now) == &first);
  CHECK(door.handshakes.take_next(door.now) == &other);
  CHECK(door.handshakes.take_next(door.now) == &second);
  CHECK(door.handshakes.take_next(door.now) == nullptr);
  CHECK_FALSE(door.handshakes.has_waiting());
}

TEST_CASE("who goes while it waits, or while its handshake is under way, leaves no trace") {
  AtDoor door;
  Newcomer& first = door.come(1);
  Newcomer& second = door.come(1);
  door.go(first);
  CHECK(door.handshakes.take_next(door.now) == &second);
  door.go(second);
  Newcomer& last = door.come(1);
  door.go(last);
  CHECK_FALSE(door.handshakes.has_waiting());
  CHECK(door.handshakes.take_next(door.now) == nullptr);
}

TEST_CASE("so many handshakes are under way at most; who takes too long makes room for others") {
  AtDoor door;
  const auto begin = [&](std::uint64_t last) {
    door.come(last);
    door.now += 10ms;  // it is paid for
    return door.handshakes.take_next(door.now);
  };
  Newcomer* const lone = begin(1);
  Newcomer* const oldest = begin(2);
  for (std::size_t count = 2; count < Handshakes::under_way_max; ++count) {
    REQUIRE(begin(2) != nullptr);
  }
  CHECK(door.handshakes.overdue(door.now) == nullptr);  // nobody waits
  Newcomer& waits = door.come(3);
  CHECK(door.handshakes.take_next(door.now) == nullptr);
  CHECK(door.handshakes.overdue(door.now) == oldest);
  door.go(*oldest);
  CHECK(door.handshakes.take_next(door.now) == &waits);
  CHECK(lone->stage == Newcomer::Stage::handshake);
}

TEST_CASE(
    "those that are not known have a fifth of the time; who turns out to be known pays none") {
  AtDoor door;
  const auto begun_within = [&](bool are_known, muster::Duration length) {
    std::size_t begun = 0;
    for (const auto end = door.now + length; door.now < end; door.now += 100us) {
      door.come(1);
      Newcomer* const next = door.handshakes.take_next(door.now);
      if (next == nullptr) continue;
      ++begun;
      if (are_known) door.handshakes.succeeded(*next);
      door.go(*next);
    }
    return begun;
  };
  CHECK(begun_within(true, 1s) == 10'000);
  CHECK(begun_within(false, 1s) <= 1'201);  // 200 at once, then one in a millisecond
  CHECK(begun_within(false, 1s) >= 999);
}

TEST_CASE("an address whose handshakes fail waits longer, others do not") {
  AtDoor door;
  std::size_t begun = 0;
  for (int count = 0; count < 100; ++count) {
    door.come(1);
    Newcomer* const next = door.handshakes.take_next(door.now);
    if (next == nullptr) continue;
    ++begun;
    door.handshakes.failed(*next, door.now);
    door.go(*next);
  }
  CHECK(begun == 17);
  Newcomer& other = door.come(2);
  CHECK(door.handshakes.take_next(door.now) == &other);
  CHECK(door.handshakes.take_next(door.now) == nullptr);
  door.now += 3ms;
  CHECK(door.handshakes.take_next(door.now) != nullptr);
}

}  // namespace
