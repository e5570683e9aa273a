#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "support/tcpstore_bytes.h"
#include "support/tcpstore_guest.h"

// Clients of TCPStore who wait: their answers come between those of later requests.

namespace muster::test::tcpstore {
namespace {

/// A guest who waits, and one who does not.
struct Waits : TcpStoreGuests {
  explicit Waits(core::Options options = {}) : TcpStoreGuests(std::move(options)) {}

  Guest& join() {
    Guest& guest = connect();
    say(guest, validate);
    return guest;
  }

  Guest& one = join();
  Guest& other = join();
};

TEST_CASE("WAIT is answered when each of its keys has been there") {
  Waits waits;
  CHECK(waits.ask(waits.one, wait({})) == stop_waiting);
  CHECK(waits.ask(waits.one, wait({"/a", "/b"})).empty());
  waits.say(waits.other, set("/a", ""));
  CHECK(waits.ask(waits.other, delete_key("/a")) == number(1));
  CHECK(waits.heard(waits.one).empty());
  waits.say(waits.other, set("/b", ""));
  CHECK(waits.heard(waits.one) == stop_waiting);
  CHECK(waits.ask(waits.one, wait({"/c", "/b", "/c"})).empty());
  waits.say(waits.other, set("/c", ""));
  CHECK(waits.heard(waits.one) == stop_waiting);
  CHECK(waits.ask(waits.one, wait({"/c", "/c", "/b"})) == stop_waiting);
  CHECK(waits.engine.counts().waits == 0);
}

TEST_CASE("whatever makes a key ends a wait for it, once") {
  Waits waits;
  const std::vector<std::string> makers = {
      set("/k", "1"),
      add("/k", 1),
      append("/k", "1"),
      compare_set("/k", "", "1"),
      multi_set({{"/x", "1"}, {"/k", "1"}}),
      push("/k", "1"),
  };
  for (const std::string& maker : makers) {
    CHECK(waits.ask(waits.one, wait({"/k"})).empty());
    waits.say(waits.other, maker + maker);
    CHECK(waits.heard(waits.one) == stop_waiting);
    waits.say(waits.other, delete_key("/k") + pop("/k") + pop("/k"));
    CHECK(waits.heard(waits.one).empty());
  }
  CHECK(waits.engine.counts().waits == 0);
}

TEST_CASE("later requests are answered while a wait stands, and its answer comes between theirs") {
  Waits waits;
  CHECK(waits.ask(waits.one, wait({"/a"}) + get("/b")) == text(""));
  CHECK(waits.ask(waits.one, wait({"/b"}) + count_keys) == number(0));
  // Its own requests end its waits, too: first the one of the first key.
  CHECK(waits.ask(waits.one, set("/b", "b") + get("/b") + set("/a", "a") + get("/a")) ==
        stop_waiting + text("b") + stop_waiting + text("a"));
}

TEST_CASE("a client of PyTorch 1 that asks for the next thing has given up its wait") {
  TcpStoreGuests guests({}, TcpStoreGuests::Dialect::first);
  const auto first_wait = [](const std::string& key) { return command(5) + listed({key}); };
  const auto first_get = [](const std::string& key) { return command(2) + text(key); };
  TcpStoreGuests::Guest& one = guests.connect();
  TcpStoreGuests::Guest& other = guests.connect();
  CHECK(guests.ask(one, first_wait("/a")).empty());
  CHECK(guests.ask(one, first_get("/b")) == text(""));
  CHECK(guests.engine.counts().waits == 0);
  guests.say(other, command(0) + text("/a") + text("late"));
  CHECK(guests.heard(one).empty());
  CHECK(guests.ask(one, first_get("/a")) == text("late"));
  CHECK(guests.ask(one, first_wait("/c")).empty());
  CHECK(guests.ask(one, first_wait("/d")).empty());
  guests.say(other, command(0) + text("/c") + text("") + command(0) + text("/d") + text(""));
  CHECK(guests.heard(one) == stop_waiting);
}

TEST_CASE("CANCEL_WAIT is always answered, and nothing comes of what was waited for") {
  Waits waits;
  CHECK(waits.ask(waits.one, cancel_wait) == wait_cancelled);
  CHECK(waits.ask(waits.one, wait({"/a"}) + wait({"/a", "/b"}) + barrier("/c", 2)).empty());
  CHECK(waits.engine.counts().waits == 3);
  CHECK(waits.ask(waits.one, cancel_wait) == wait_cancelled);
  CHECK(waits.engine.counts().waits == 0);
  waits.say(waits.other, set("/a", "") + set("/b", "") + set("/c", ""));
  CHECK(waits.heard(waits.one).empty());
  CHECK(waits.ask(waits.one, get("/no") + cancel_wait) == text("") + wait_cancelled);
  // The wait was over before: the client reads both.
  CHECK(waits.ask(waits.one, wait({"/d"})).empty());
  waits.say(waits.other, set("/d", ""));
  CHECK(waits.ask(waits.one, cancel_wait) == stop_waiting + wait_cancelled);
}

TEST_CASE("a wait that ends in the midst of a postponed answer is answered behind it") {
  Waits waits;
  waits.say(waits.other, multi_set({{"/1", "one"}, {"/2", "two"}, {"/3", "three"}}));
  waits.say(waits.one, wait({"/a"}) + wait({"/b"}) + wait({"/c"}));
  waits.one.steps_left = 2;
  CHECK(waits.ask(waits.one, multi_get({"/1", "/2", "/3"}) + get("/1")) ==
        text("one") + text("two"));
  CHECK(waits.one.is_postponed);
  waits.say(waits.other, set("/a", "") + set("/c", ""));
  CHECK(waits.heard(waits.one).empty());
  waits.go_on(waits.one);
  CHECK(waits.heard(waits.one) == text("three") + stop_waiting + stop_waiting + text("one"));
  waits.say(waits.other, set("/b", ""));
  CHECK(waits.heard(waits.one) == stop_waiting);
}

TEST_CASE("a request that is postponed before its first step holds back no wait, but itself") {
  Waits waits;
  waits.say(waits.one, wait({"/a"}));
  waits.one.steps_left = 0;
  CHECK(waits.ask(waits.one, multi_get({"/a", "/a"}) + ping(1)).empty());
  waits.say(waits.other, set("/a", "v"));
  CHECK(waits.heard(waits.one) == stop_waiting);
  waits.go_on(waits.one, 1);  // and is postponed once more
  CHECK(waits.heard(waits.one) == text("v"));
  waits.say(waits.other, set("/a", "w"));
  waits.go_on(waits.one);
  CHECK(waits.heard(waits.one) == text("w") + number(1, 4));
}

TEST_CASE("every request may be postponed, and has its whole effect once") {
  Waits waits;
  const std::vector<std::pair<std::string, std::string>> exchanges = {
      {set("/a", "1"), ""},
      {add("/n", 2), number(2)},
      {append("/a", "2"), ""},
      {get("/a"), text("12")},
      {compare_set("/a", "12", "3"), text("3")},
      {compare_set("/e", "", ""), text("")},
      {compare_set("/e", "", "x"), text("x")},
      {multi_set({{"/m", "m"}, {"/o", "o"}}), ""},
      {multi_get({"/m", "/o", "/n"}), text("m") + text("o") + text("2")},
      {push("/q", "1") + push("/q", "2"), ""},
      {queue_length("/q"), number(2)},
      {pop("/q"), number(2) + text("1")},
      {pop("/q"), number(1) + text("2")},
      {check({"/a", "/q"}), not_ready},
      {wait({"/a", "/m"}), stop_waiting},
      {count_keys, number(5)},
      {delete_key("/m"), number(1)},
      {barrier("/b", 1), stop_waiting},
      {barrier("/c", 2) + cancel_wait, wait_cancelled},
      {get("/c"), text("1")},
  };
  for (const auto& [said, answered] : exchanges) {
    waits.one.steps_left = 0;
    waits.say(waits.one, said);
    for (int count = 0; waits.one.is_postponed; ++count) {
      waits.go_on(waits.one, count % 2);
      REQUIRE(count < 20);
    }
    CHECK(waits.heard(waits.one) == answered);
  }
}

TEST_CASE("a BARRIER releases all who wait at it when the last of so many comes") {
  Waits waits;
  std::vector<TcpStoreGuest*> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.push_back(&waits.join());
    CHECK(waits.ask(*ranks.back(), barrier("/b", 5)).empty());
  }
  CHECK(waits.ask(waits.one, barrier("/b", 5)) == stop_waiting);
  for (TcpStoreGuest* const rank : ranks) CHECK(waits.heard(*rank) == stop_waiting);
  CHECK(waits.ask(waits.one, get("/b")) == text("5"));
  // It counts on: who comes later finds it open.
  CHECK(waits.ask(waits.other, barrier("/b", 5)) == stop_waiting);
  CHECK(waits.ask(waits.other, barrier("/b", 7)) == stop_waiting);
  CHECK(waits.ask(waits.other, barrier("/b", 9)).empty());
  CHECK(waits.ask(waits.other, cancel_wait) == wait_cancelled);
  // Who has given up has been counted.
  CHECK(waits.ask(waits.one, barrier("/b", 9)) == stop_waiting);
  CHECK(waits.ask(waits.one, barrier("/other", 0)) == stop_waiting);
  CHECK(waits.ask(waits.one, barrier("/other", -1)) == stop_waiting);
}

TEST_CASE("a queue gives what was pushed first, and a push wakes who has waited for longest") {
  Waits waits;
  std::vector<TcpStoreGuest*> consumers;
  for (int index = 0; index < 4; ++index) {
    consumers.push_back(&waits.join());
    CHECK(waits.ask(*consumers.back(), wait({"/q"})).empty());
  }
  CHECK(waits.ask(*consumers[1], cancel_wait) == wait_cancelled);
  for (const std::size_t next : {std::size_t{0}, std::size_t{2}, std::size_t{3}}) {
    waits.say(waits.one, push("/q", std::to_string(next)));
    for (std::size_t index = 0; index < consumers.size(); ++index) {
      CHECK(waits.heard(*consumers[index]) == (index == next ? stop_waiting : ""));
    }
  }
  CHECK(waits.ask(waits.other, pop("/q")) == number(0));  // each item is reserved
  for (const auto& [index, item] : {std::pair(0, "0"), std::pair(3, "2"), std::pair(2, "3")}) {
    const std::string left = waits.ask(waits.one, queue_length("/q"));
    CHECK(waits.ask(*consumers[static_cast<std::size_t>(index)], pop("/q")) == left + text(item));
  }
  CHECK(waits.ask(waits.other, pop("/q")) == number(0));
  CHECK(waits.ask(waits.other, wait({"/q"})).empty());
}

TEST_CASE("every request ends the reservation of an item, also CANCEL_WAIT and PING") {
  for (const std::string& request : {cancel_wait, ping(7), wait({"/other"}), queue_length("/q")}) {
    Waits waits;
    CHECK(waits.ask(waits.one, wait({"/q"})).empty());
    CHECK(waits.ask(waits.other, wait({"/q"})).empty());
    waits.say(waits.join(), push("/q", "item"));
    CHECK(waits.heard(waits.one) == stop_waiting);
    CHECK(waits.heard(waits.other).empty());
    waits.say(waits.one, request);
    CHECK(waits.heard(waits.other) == stop_waiting);
    CHECK(waits.ask(waits.other, pop("/q")) == number(1) + text("item"));
  }
}

TEST_CASE("what a guest waits for goes with its connection") {
  Waits waits;
  TcpStoreGuest& leaves = waits.join();
  waits.say(leaves, wait({"/a", "/b"}) + wait({"/q"}) + barrier("/c", 2));
  waits.say(waits.one, wait({"/q"}));
  waits.disconnect(leaves);
  CHECK(waits.engine.counts().waits == 1);
  waits.say(waits.other, push("/q", "item"));
  CHECK(waits.heard(waits.one) == stop_waiting);
  CHECK(waits.heard(leaves).empty());
  CHECK(waits.ask(waits.other, barrier("/c", 2)) == stop_waiting);
}

TEST_CASE("one connection waits for no more than parked_waits_max at a time") {
  core::Options options;
  options.limits.parked_waits_max = 3;
  Waits waits(options);
  CHECK(waits.ask(waits.one, wait({"/a"}) + wait({"/b"}) + wait({"/c"})).empty());
  CHECK(waits.ask(waits.one, cancel_wait) == wait_cancelled);
  CHECK(waits.ask(waits.one, wait({"/a"}) + wait({"/b"}) + wait({"/c"})).empty());
  CHECK(waits.one.is_open());
  waits.say(waits.one, wait({"/d"}));
  CHECK_FALSE(waits.one.is_open());
  CHECK(waits.engine.counts().waits == 0);
}

}  // namespace
}  // namespace muster::test::tcpstore
