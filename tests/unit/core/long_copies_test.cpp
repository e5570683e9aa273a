#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "group_driver.h"

// Replies that take longer to put together than an event may: what they hold is decided at once.

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t work_max = 16;
constexpr std::size_t value_bytes = 100'000;

/// A group of three whose all_gather takes several events, and what each rank has called.
struct LongRound : GroupDriver {
  LongRound() : GroupDriver(options()), ranks(form(3)) {
    works_off = false;
    memory_before = engine.counts().memory_bytes;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      values.emplace_back(value_bytes, static_cast<char>('a' + rank));
      wire::CollectiveCall all_gather{epoch, 1, wire::Collective::all_gather, 0, 0, {values[rank]}};
      request_ids.push_back(call(ranks[rank], all_gather));
    }
  }

  static core::Options options() {
    core::Options options;
    options.work_per_event_max = work_max;
    return options;
  }

  /// One piece.
  void go_on() {
    apply_alone(core::Continue{});
    CHECK(engine.work() <= 2 * (work_max + 1));  // what it copied it may give back as well
  }
  int go_on_to_the_end() {
    int pieces = 0;
    for (; engine.has_backlog(); ++pieces) go_on();
    return pieces;
  }
  void check_outcome(const core::SendReply& reply) const {
    REQUIRE(reply.code == 0);
    const std::string body = body_of(reply);
    const auto round = wire::decode_body<wire::RoundReply>(body);
    REQUIRE(round.has_value());
    CHECK(std::equal(round->values.begin(), round->values.end(), values.begin(), values.end()));
  }

  std::vector<core::ConnectionId> ranks;
  std::vector<std::string> values;
  std::vector<std::uint64_t> request_ids;
  std::uint64_t memory_before = 0;
};

/// A driver that puts off what is long, with a client and long values.
struct LongValues : EngineDriver {
  LongValues() : EngineDriver(LongRound::options()), a(connect()) { works_off = false; }

  std::uint64_t set(std::string_view key, std::string_view value) {
    return ask(a, wire::Set{key, value, {}, false, false});
  }
  /// The code of a reply that must be there.
  ErrorCode code(std::uint64_t id) { return code_of(reply(id).value()); }
  void go_on_to_the_end() {
    for (; engine.has_backlog(); apply_alone(core::Continue{})) {
    }
  }

  core::ConnectionId a;
  const std::string first = std::string(value_bytes, 'f');
  const std::string second = std::string(value_bytes, 's');
};

}  // namespace

TEST_CASE("a long round is decided at once, put together in pieces, and held no more than once") {
  LongRound driver;
  CHECK(driver.effects.empty());
  CHECK(driver.engine.counts().objects == 1);
  CHECK(driver.engine.counts().waits == 0);
  const std::uint64_t memory_most = driver.memory_before + 3 * value_bytes + 4096;
  int pieces = 0;
  for (; driver.engine.has_backlog() && driver.effects.empty(); ++pieces) {
    driver.go_on();
    CHECK(driver.engine.counts().memory_bytes < memory_most + value_bytes);
  }
  CHECK(pieces >= 4);
  CHECK(driver.engine.counts().memory_bytes < memory_most);
  const auto replies = driver.take_replies();
  REQUIRE(replies.size() == 3);
  for (const auto& [id, reply] : replies) driver.check_outcome(reply);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    driver.acknowledge(driver.ranks[rank], {driver.request_ids[rank]});
  }
}

TEST_CASE("whoever comes back while the outcome is put together gets it once, where it is") {
  LongRound driver;
  driver.go_on();
  const core::ConnectionId old = driver.ranks[0];
  driver.apply(core::Disconnected{old, core::DisconnectCause::closed});
  CHECK(driver.go_on_to_the_end() > 0);
  const auto replies = driver.take_replies();
  CHECK(replies.size() == 2);
  CHECK_FALSE(replies.contains(driver.request_ids[0]));
  CHECK(driver.engine.counts().cached_results == 3);  // it has yet to ask for it
}

TEST_CASE("a loss that comes while the outcome is put together does not change it") {
  LongRound driver;
  driver.go_on();
  driver.apply(core::Goodbye{driver.ranks[0]});
  driver.go_on_to_the_end();
  const auto replies = driver.take_replies();
  REQUIRE(replies.size() == 2);
  for (const auto& [id, reply] : replies) driver.check_outcome(reply);
}

TEST_CASE("who has abandoned its part of a long round gets nothing but what was on its way") {
  LongRound driver;
  const std::vector<std::uint64_t> ids = {driver.request_ids[1]};
  driver.apply(core::Abandoned{driver.ranks[1], &ids});
  driver.go_on_to_the_end();
  CHECK(driver.engine.counts().cached_results == 2);
  for (const core::ConnectionId rank : driver.ranks) driver.apply(core::Goodbye{rank});
  driver.effects.clear();
  driver.pass(1s);
  CHECK(driver.engine.counts().objects == 0);
  CHECK(driver.engine.counts().memory_bytes == 0);
}

TEST_CASE("an engine can be destroyed in the midst of a long round") {
  LongRound driver;
  driver.go_on();
  CHECK(driver.engine.has_backlog());
}

TEST_CASE("a long multi_get tells what the keys held when it was asked") {
  EngineDriver driver(LongRound::options());
  const core::ConnectionId a = driver.connect();
  const std::string value(value_bytes, 'v');
  driver.ask(a, wire::Set{"long", value, {}, false, false});
  driver.ask(a, wire::Set{"short", "s", {}, false, false});
  driver.works_off = false;
  const std::uint64_t id = driver.ask(a, wire::MultiGet{{"short", "long", "absent", "long"}});
  CHECK_FALSE(driver.reply(id).has_value());
  driver.ask(a, wire::Remove{{"long", "short"}});
  while (driver.engine.has_backlog()) driver.apply_alone(core::Continue{});
  const auto reply = driver.reply(id);
  REQUIRE(reply.has_value());
  const std::string body = body_of(*reply);
  const auto values = wire::decode_body<wire::ValuesReply>(body)->values;
  REQUIRE(values.size() == 4);
  CHECK(values[0] == "s");
  CHECK(values[1] == value);
  CHECK_FALSE(values[2].has_value());
  CHECK(values[3] == value);
}

TEST_CASE("a long multi_get is refused at once when there is no room for it") {
  core::Options options = LongRound::options();
  options.memory_bytes_max = 2 * value_bytes;
  EngineDriver driver(options);
  const core::ConnectionId a = driver.connect();
  const std::string value(value_bytes, 'v');
  driver.ask(a, wire::Set{"long", value, {}, false, false});
  const std::uint64_t memory = driver.engine.counts().memory_bytes;
  const auto reply = driver.reply(driver.ask(a, wire::MultiGet{{"long", "long"}}));
  CHECK(code_of(*reply) == ErrorCode::resource_exhausted);
  driver.effects.clear();
  CHECK(driver.engine.counts().memory_bytes <= memory);
}

TEST_CASE("values of a long request are copied out of its memory by later events") {
  LongValues driver;
  core::ChargedMemory memory(driver.engine.memory().all);
  REQUIRE(memory.grow(2 * value_bytes, 0, core::Charging::normal));
  std::memset(memory.begin(), 'f', value_bytes);
  std::memset(memory.begin() + value_bytes, 's', value_bytes);
  wire::Request request;
  request.id = 1000;
  request.body = wire::MultiSet{{{"first", {memory.begin(), value_bytes}},
                                 {"second", {memory.begin() + value_bytes, value_bytes}}},
                                {}};
  const core::ConnectionId b = driver.connect();
  driver.apply(core::Requested{b, &request, &memory});
  CHECK(driver.engine.work() < 8);
  CHECK(driver.code(1000) == ErrorCode{});
  CHECK(memory.size_bytes() == 0);
  CHECK(driver.engine.counts().keys == 2);

  // Whoever reads it has it when it is whole; whoever compares it makes it so.
  const std::uint64_t get = driver.ask(driver.a, wire::Get{"second"});
  CHECK_FALSE(driver.reply(get).has_value());
  const std::uint64_t same = driver.ask(driver.a, wire::CompareSet{"first", driver.first, "x", {}});
  CHECK(body_of(*driver.reply(same)).front() == 1);
  driver.go_on_to_the_end();
  CHECK(value_of(*driver.reply(get)) == driver.second);
  driver.ask(driver.a, wire::Remove{{"first", "second"}});
  driver.effects.clear();
  for (const core::ConnectionId connection : {driver.a, b}) {
    driver.apply(core::Goodbye{connection});
  }
  driver.effects.clear();
  driver.apply(core::Advance{});
  CHECK(driver.engine.counts().memory_bytes == 0);
}

TEST_CASE("a long append is done in later events, also one that follows at once") {
  LongValues driver;
  driver.set("k", driver.first);
  CHECK(driver.code(driver.ask(driver.a, wire::Append{"k", driver.second})) == ErrorCode{});
  const std::uint64_t once = driver.ask(driver.a, wire::Get{"k"});
  CHECK(driver.code(driver.ask(driver.a, wire::Append{"k", driver.first})) == ErrorCode{});
  const std::uint64_t twice = driver.ask(driver.a, wire::Get{"k"});
  CHECK_FALSE(driver.reply(twice).has_value());
  driver.go_on_to_the_end();
  CHECK(value_of(*driver.reply(once)) == driver.first + driver.second);
  CHECK(value_of(*driver.reply(twice)) == driver.first + driver.second + driver.first);
}

TEST_CASE("an append to what is not whole yet finds it whole when it is compared") {
  LongValues driver;
  driver.set("k", driver.first);
  driver.ask(driver.a, wire::Append{"k", driver.second});
  driver.ask(driver.a, wire::Append{"k", driver.first});
  const std::string all = driver.first + driver.second + driver.first;
  const std::uint64_t id = driver.ask(driver.a, wire::CompareSet{"k", all, "x", {}});
  CHECK(body_of(*driver.reply(id)).front() == 1);
  driver.go_on_to_the_end();
  CHECK(value_of(*driver.reply(driver.ask(driver.a, wire::Get{"k"}))) == "x");
}
