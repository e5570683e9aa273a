#include <doctest/doctest.h>

#include "engine_driver.h"

// Guests: sessions of clients that speak another protocol. Their waits, queues and barriers.

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

struct GuestDriver : EngineDriver {
  using EngineDriver::EngineDriver;

  core::ConnectionId connect_guest(const std::string& name_space = "guests") {
    core::Hello event;
    event.connection = 1000 + ++guests_count;
    event.hello.name_space = name_space;
    event.guest.emplace().idle_lifetime = 1h;
    apply(event);
    return event.connection;
  }
  std::uint64_t ask_as_guest(core::ConnectionId connection, core::GuestRequest request) {
    const std::uint64_t id = next_request_id();
    apply(core::RequestedByGuest{connection, id, &request});
    return id;
  }
  /// At once, or it fails.
  std::string answer(core::ConnectionId connection, core::GuestRequest request) {
    const auto told = reply(ask_as_guest(connection, std::move(request)));
    REQUIRE(told);
    REQUIRE(told->code == 0);
    return body_of(*told);
  }
  std::int64_t number(core::ConnectionId connection, core::GuestRequest request) {
    const std::string body = answer(connection, std::move(request));
    return wire::decode_body<wire::NumberReply>(body.substr(0, 8)).value().number;
  }
  bool is_answered(std::uint64_t request_id) {
    const auto told = reply(request_id);
    if (told) CHECK(told->code == 0);
    return told.has_value();
  }

  std::uint64_t guests_count = 0;
};

wire::Set set_to_v(std::string_view key) { return {key, "v", {}, false, false}; }

TEST_CASE("a guest needs no echo, keeps no answers, may be silent, and ends with its connection") {
  GuestDriver driver;
  const auto guest = driver.connect_guest();
  for (int count = 0; count < 200; ++count) {  // more than a client may leave unacknowledged
    wire::Request request;
    request.id = driver.next_request_id();
    request.body = set_to_v("key");
    driver.repeat(guest, request);
    CHECK(driver.is_answered(request.id));
  }
  CHECK(driver.engine.counts().cached_results == 0);
  driver.pass(10min);
  CHECK(driver.engine.counts().sessions == 1);
  CHECK(driver.number(guest, core::CountKeys{}) == 1);
  driver.apply(core::Disconnected{guest, core::DisconnectCause::lost});
  CHECK(driver.engine.counts().sessions == 0);
  CHECK(driver.number(driver.connect_guest(), core::CountKeys{}) == 1);  // its keys stay
}

TEST_CASE("a guest waits until each key has been there, though not at one time") {
  GuestDriver driver;
  const auto guest = driver.connect_guest();
  const auto other = driver.connect("guests");
  driver.ask(other, set_to_v("there"));
  const auto waits = driver.ask_as_guest(guest, core::AwaitKeys{{"there", "a", "b", "a"}});
  CHECK_FALSE(driver.is_answered(waits));
  driver.ask(other, set_to_v("a"));
  driver.ask(other, wire::Remove{{"a", "there"}});
  driver.ask(other, set_to_v("a"));
  CHECK_FALSE(driver.is_answered(waits));
  driver.ask(other, set_to_v("b"));
  CHECK(driver.is_answered(waits));
  CHECK(driver.is_answered(driver.ask_as_guest(guest, core::AwaitKeys{})));
  CHECK(driver.is_answered(driver.ask_as_guest(guest, core::AwaitKeys{{"a", "b"}})));
  CHECK(driver.engine.counts().waits == 0);
}

TEST_CASE("what a guest waits for goes when it goes, or gives up") {
  GuestDriver driver;
  const auto guest = driver.connect_guest();
  const auto first = driver.ask_as_guest(guest, core::AwaitKeys{{"a", "b"}});
  const auto second = driver.ask_as_guest(guest, core::AwaitKeys{{"a"}});
  const std::vector<std::uint64_t> ids = {first};
  driver.apply(core::Abandoned{guest, &ids});
  CHECK(driver.engine.counts().waits == 1);
  const auto other = driver.connect("guests");
  driver.ask(other, set_to_v("a"));
  CHECK_FALSE(driver.is_answered(first));
  CHECK(driver.is_answered(second));
  driver.ask(other, wire::Remove{{"a"}});
  driver.ask_as_guest(guest, core::AwaitKeys{{"a", "c"}});
  driver.apply(core::Disconnected{guest, core::DisconnectCause::closed});
  CHECK(driver.engine.counts().waits == 0);
  driver.ask(other, set_to_v("a"));
  driver.apply(core::Goodbye{other});
}

TEST_CASE("a barrier of guests: who waits at a key is released with the others, all at once") {
  GuestDriver driver;
  std::vector<std::uint64_t> waits;
  std::vector<core::ConnectionId> guests;
  for (int rank = 0; rank < 5; ++rank) {
    guests.push_back(driver.connect_guest());
    driver.ask(guests.back(), wire::Add{"barrier", 1});  // the key is there, and they wait
    waits.push_back(driver.ask_as_guest(guests.back(), core::AwaitRelease{"barrier"}));
  }
  for (const std::uint64_t id : waits) CHECK_FALSE(driver.is_answered(id));
  driver.answer(guests[0], core::Release{"barrier"});
  for (const std::uint64_t id : waits) CHECK(driver.is_answered(id));
  driver.answer(guests[0], core::Release{"barrier"});
  driver.answer(guests[0], core::Release{"nowhere"});
}

TEST_CASE("a queue stands beside the key's value, and its items leave in their order") {
  GuestDriver driver;
  const auto guest = driver.connect_guest();
  CHECK(driver.number(guest, core::Pop{"q"}) == 0);
  const std::string long_item(100'000, 'x');
  CHECK(driver.number(guest, core::Push{"q", "first"}) == 1);
  CHECK(driver.number(guest, core::Push{"q", long_item}) == 2);
  CHECK(driver.number(guest, core::Push{"q", ""}) == 3);
  CHECK(driver.number(guest, core::CountKeys{}) == 0);
  CHECK(driver.answer(guest, core::CheckKeys{{"q"}}) == std::string(1, '\1'));
  const auto other = driver.connect("guests");
  driver.ask(other, set_to_v("q"));
  driver.ask(other, wire::Remove{{"q"}});
  CHECK(driver.number(guest, core::CountQueued{"q"}) == 3);
  const auto popped = [&] { return driver.answer(guest, core::Pop{"q"}); };
  const auto of_count = [](std::uint64_t count) {
    std::string bytes(8, '\0');
    bytes[0] = static_cast<char>(count);
    return bytes;
  };
  CHECK(popped() == of_count(3) + "first");
  CHECK(popped() == of_count(2) + long_item);
  CHECK(popped() == of_count(1));
  CHECK(popped() == of_count(0));
  CHECK(driver.answer(guest, core::CheckKeys{{"q"}}) == std::string(1, '\0'));
}

TEST_CASE("an item wakes one of those who wait for its key, the first one") {
  GuestDriver driver;
  std::vector<std::uint64_t> waits;
  for (int count = 0; count < 3; ++count) {
    waits.push_back(driver.ask_as_guest(driver.connect_guest(), core::AwaitKeys{{"q"}}));
  }
  const auto guest = driver.connect_guest();
  driver.number(guest, core::Push{"q", "1"});
  CHECK(driver.is_answered(waits[0]));
  CHECK_FALSE(driver.is_answered(waits[1]));
  driver.number(guest, core::Push{"q", "2"});
  CHECK(driver.is_answered(waits[1]));
  CHECK_FALSE(driver.is_answered(waits[2]));
  driver.ask(driver.connect("guests"), set_to_v("q"));
  CHECK(driver.is_answered(waits[2]));
}

TEST_CASE("one item is enough for a guest who has named its key twice, and no more than one") {
  GuestDriver driver;
  const auto twice = driver.ask_as_guest(driver.connect_guest(), core::AwaitKeys{{"q", "q"}});
  const auto other = driver.ask_as_guest(driver.connect_guest(), core::AwaitKeys{{"q"}});
  driver.number(driver.connect_guest(), core::Push{"q", "item"});
  CHECK(driver.is_answered(twice));
  CHECK_FALSE(driver.is_answered(other));
}

std::string value_of(const std::optional<core::SendReply>& told) {
  REQUIRE(told);
  REQUIRE(told->code == 0);
  return std::string(wire::decode_body<wire::ValueReply>(body_of(*told)).value().value);
}

TEST_CASE("what guests push others pop, and the other way round") {
  GuestDriver driver;
  const auto guest = driver.connect_guest();
  const auto other = driver.connect("guests");
  driver.number(guest, core::Push{"q", "of a guest"});
  const auto pushed = driver.reply(driver.ask(other, wire::QueuePush{"q", "of another"}));
  CHECK(wire::decode_body<wire::NumberReply>(body_of(*pushed)).value().number == 2);
  CHECK(value_of(driver.reply(driver.ask(other, wire::QueuePop{"q"}))) == "of a guest");
  CHECK(driver.answer(guest, core::Pop{"q"}).substr(8) == "of another");
}

TEST_CASE("an item is for the one who came first, whether a guest or another one") {
  GuestDriver driver;
  const auto guest = driver.connect_guest();
  const auto other = driver.connect("guests");
  const auto first = driver.ask(other, wire::QueuePop{"q"}, 10s);
  const auto second = driver.ask_as_guest(guest, core::AwaitKeys{{"q"}});
  const auto third = driver.ask(other, wire::QueuePop{"q"}, 10s);
  const auto pusher = driver.connect_guest();
  driver.number(pusher, core::Push{"q", "1"});
  CHECK(value_of(driver.reply(first)) == "1");
  CHECK_FALSE(driver.is_answered(second));
  driver.number(pusher, core::Push{"q", "2"});
  CHECK(driver.is_answered(second));
  CHECK_FALSE(driver.is_answered(third));
  CHECK(driver.answer(guest, core::Pop{"q"}).substr(8) == "2");
  driver.number(pusher, core::Push{"q", "3"});
  CHECK(value_of(driver.reply(third)) == "3");
  CHECK(driver.engine.counts().waits == 0);
}

TEST_CASE("an item is reserved for the guest that was notified of it, until its next request") {
  GuestDriver driver;
  const auto guest = driver.connect_guest();
  const auto other = driver.connect("guests");
  const auto told = driver.ask_as_guest(guest, core::AwaitKeys{{"q"}});
  driver.number(driver.connect_guest(), core::Push{"q", "1"});
  CHECK(driver.is_answered(told));
  CHECK(code_of(*driver.reply(driver.ask(other, wire::QueuePop{"q"}))) == ErrorCode::not_found);
  const auto waits = driver.ask(other, wire::QueuePop{"q"}, 10s);
  CHECK_FALSE(driver.reply(waits));
  SUBCASE("it pops") {
    CHECK(driver.answer(guest, core::Pop{"q"}).substr(8) == "1");
    CHECK_FALSE(driver.reply(waits));
    driver.number(guest, core::Push{"q", "2"});
    CHECK(value_of(driver.reply(waits)) == "2");
  }
  SUBCASE("it asks for something else") {
    driver.number(guest, core::CountKeys{});
    CHECK(value_of(driver.reply(waits)) == "1");
  }
  SUBCASE("it asks for something else that others ask, too") {
    driver.ask(guest, wire::Get{"key"});
    CHECK(value_of(driver.reply(waits)) == "1");
  }
  SUBCASE("its connection ends") {
    driver.apply(core::Disconnected{guest, core::DisconnectCause::closed});
    CHECK(value_of(driver.reply(waits)) == "1");
  }
  SUBCASE("the grace is over") {
    driver.pass(1900ms);
    CHECK_FALSE(driver.reply(waits));
    driver.pass(200ms);
    CHECK(value_of(driver.reply(waits)) == "1");
    CHECK(driver.number(guest, core::Pop{"q"}) == 0);
  }
  CHECK(driver.engine.counts().waits == 0);
}

TEST_CASE("a guest pops no item that is reserved for another guest, and is not notified of it") {
  GuestDriver driver;
  const auto guest = driver.connect_guest();
  const auto other = driver.connect_guest();
  const auto told = driver.ask_as_guest(guest, core::AwaitKeys{{"q"}});
  const auto waits = driver.ask_as_guest(other, core::AwaitKeys{{"q"}});
  const auto third = driver.connect_guest();
  driver.number(third, core::Push{"q", "1"});
  CHECK(driver.is_answered(told));
  CHECK_FALSE(driver.is_answered(waits));
  CHECK(driver.number(third, core::Pop{"q"}) == 0);
  CHECK(driver.answer(third, core::CheckKeys{{"q"}}) == std::string(1, '\0'));
  CHECK(driver.number(third, core::CountQueued{"q"}) == 1);
  SUBCASE("it pops its item") {
    CHECK(driver.answer(guest, core::Pop{"q"}).substr(8) == "1");
    CHECK_FALSE(driver.is_answered(waits));
    driver.number(third, core::Push{"q", "2"});
    CHECK(driver.is_answered(waits));
    CHECK(driver.number(guest, core::Pop{"q"}) == 0);
  }
  SUBCASE("a second item is for the others") {
    driver.number(third, core::Push{"q", "2"});
    CHECK(driver.is_answered(waits));
    CHECK(driver.number(third, core::Pop{"q"}) == 0);
    CHECK(driver.answer(other, core::Pop{"q"}).substr(8) == "1");
    CHECK(driver.answer(guest, core::Pop{"q"}).substr(8) == "2");
  }
  SUBCASE("it asks for something else: the guest that waits is notified") {
    driver.number(guest, core::CountKeys{});
    CHECK(driver.is_answered(waits));
    CHECK(driver.number(guest, core::Pop{"q"}) == 0);
    CHECK(driver.answer(other, core::Pop{"q"}).substr(8) == "1");
  }
  SUBCASE("it is silent until the grace is over: the guest that waits is notified") {
    driver.pass(2100ms);
    CHECK(driver.is_answered(waits));
    driver.pass(2100ms);
    CHECK(driver.answer(guest, core::Pop{"q"}).substr(8) == "1");
    CHECK(driver.number(other, core::Pop{"q"}) == 0);
  }
}

TEST_CASE("a guest that waits for several keys leaves an item to the next guest") {
  GuestDriver driver;
  const auto several = driver.ask_as_guest(driver.connect_guest(), core::AwaitKeys{{"q", "key"}});
  const auto one = driver.ask_as_guest(driver.connect_guest(), core::AwaitKeys{{"q"}});
  driver.number(driver.connect_guest(), core::Push{"q", "1"});
  CHECK_FALSE(driver.is_answered(several));
  CHECK(driver.is_answered(one));
}

TEST_CASE("a guest that waits for other keys, too, is not told, and leaves the item to the next") {
  GuestDriver driver;
  const auto guest = driver.ask_as_guest(driver.connect_guest(), core::AwaitKeys{{"q", "key"}});
  const auto waits = driver.ask(driver.connect("guests"), wire::QueuePop{"q"}, 10s);
  driver.number(driver.connect_guest(), core::Push{"q", "1"});
  CHECK_FALSE(driver.is_answered(guest));
  CHECK(value_of(driver.reply(waits)) == "1");
}

TEST_CASE("an item that is there when a guest asks is kept for it, too") {
  GuestDriver driver;
  const auto guest = driver.connect_guest();
  const auto other = driver.connect("guests");
  driver.ask(other, wire::QueuePush{"q", "1"});
  CHECK(driver.is_answered(driver.ask_as_guest(guest, core::AwaitKeys{{"q"}})));
  CHECK(code_of(*driver.reply(driver.ask(other, wire::QueuePop{"q"}))) == ErrorCode::not_found);
  driver.ask(other, wire::QueuePush{"q", "2"});
  CHECK(value_of(driver.reply(driver.ask(other, wire::QueuePop{"q"}))) == "1");
  CHECK(driver.answer(guest, core::Pop{"q"}).substr(8) == "2");
}

TEST_CASE("the second half of a barrier is not postponed, whatever waits to be sent") {
  GuestDriver driver;
  const core::UnsentReplies no_room{1, 0, UINT64_MAX / 4, 0};
  const auto is_postponed = [&](const core::GuestRequest& request) {
    driver.effects.clear();
    driver.apply(core::RequestedByGuest{driver.connect_guest(), driver.next_request_id(), &request,
                                        no_room});
    return std::holds_alternative<core::Postpone>(driver.effects.back());
  };
  CHECK(is_postponed(core::CountKeys{}));
  CHECK(is_postponed(core::AwaitKeys{{"key"}}));
  CHECK_FALSE(is_postponed(core::AwaitRelease{"key"}));
  CHECK(driver.engine.counts().waits == 1);
  CHECK_FALSE(is_postponed(core::Release{"key"}));
  CHECK(driver.engine.counts().waits == 0);
}

TEST_CASE("queues take memory of the server's, and give it back with their namespace") {
  core::Options options;
  options.memory_bytes_max = 1 << 20;
  GuestDriver driver(options);
  const auto guest = driver.connect_guest();
  const std::string item(10'000, 'x');
  std::optional<core::SendReply> told;
  int taken = 0;
  while ((told = driver.reply(driver.ask_as_guest(guest, core::Push{"q", item}))) &&
         told->code == 0) {
    ++taken;
  }
  CHECK(code_of(*told) == ErrorCode::resource_exhausted);
  CHECK(taken > 90);
  driver.number(guest, core::Pop{"q"});
  driver.effects.clear();
  CHECK(driver.number(guest, core::Push{"q", item}) == taken);
  driver.apply(core::Disconnected{guest, core::DisconnectCause::closed});
  const auto other = driver.connect("other", wire::Role::supervisor);
  driver.effects.clear();
  CHECK(code_of(*driver.reply(driver.ask(other, wire::DropNameSpace{"guests"}))) == ErrorCode{});
  driver.pass(1s);
  driver.effects.clear();
  CHECK(driver.engine.counts().memory_bytes < 1000);
}

TEST_CASE("a namespace stays for what is in its queues, and goes when they are empty") {
  GuestDriver driver;
  const auto operates = driver.connect("", wire::Role::supervisor);
  const auto drop = [&] {
    return code_of(*driver.reply(driver.ask(operates, wire::DropNameSpace{"guests"})));
  };
  const auto guest = driver.connect_guest();
  driver.number(guest, core::Push{"q", "item"});
  driver.apply(core::Disconnected{guest, core::DisconnectCause::closed});
  const auto next = driver.connect_guest();
  CHECK(driver.number(next, core::Pop{"q"}) == 1);
  driver.apply(core::Disconnected{next, core::DisconnectCause::closed});
  CHECK(drop() == ErrorCode::not_found);
}

TEST_CASE("an engine can be destroyed with guests who wait, and with queues") {
  GuestDriver driver;
  const auto guest = driver.connect_guest();
  driver.ask_as_guest(guest, core::AwaitKeys{{"a", "b", "c"}});
  driver.ask_as_guest(guest, core::AwaitRelease{"a"});
  driver.number(guest, core::Push{"q", "item"});
  driver.number(guest, core::Push{"b", "item"});
  driver.ask_as_guest(driver.connect_guest(), core::AwaitKeys{{"q"}});  // the item is kept for it
  driver.ask(driver.connect("guests"), wire::QueuePop{"q"}, 10s);
  driver.ask(driver.connect("guests"), wire::QueuePop{"other"}, 10s);
  driver.effects.clear();
}

}  // namespace
