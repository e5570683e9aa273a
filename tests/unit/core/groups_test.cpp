#include <doctest/doctest.h>

#include "group_driver.h"

// Groups with many members: joining, dying and regrouping at once, and what is left. The rules
// themselves are scripts.

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

wire::Join join(std::uint32_t rank, std::uint32_t size, bool standby = false) {
  return {"g", rank, size, 1h, standby, {}};
}

wire::Regroup regroup(const GroupDriver& driver, std::uint32_t size = 0,
                      std::uint64_t attempt = 1) {
  return {driver.epoch, attempt, 1, size, 0};
}

std::uint32_t world_size_in(const core::SendReply& reply) {
  return wire::decode_body<wire::FormedReply>(body_of(reply)).value().world_size;
}

}  // namespace

TEST_CASE("a thousand ranks form a group, and nothing is left when they are gone") {
  GroupDriver driver;
  const auto ranks = driver.form(1024);
  CHECK(driver.engine.counts().groups == 1);
  for (const core::ConnectionId rank : ranks) driver.apply(core::Goodbye{rank});
  driver.effects.clear();
  driver.pass(1s);
  const core::Counts counts = driver.engine.counts();
  CHECK(counts.groups == 0);
  CHECK(counts.epochs == 0);
  CHECK(counts.memory_bytes == 0);
  CHECK(counts.timers == 0);
}

TEST_CASE("joiners that time out one after the other all say who never came") {
  GroupDriver driver;
  std::vector<std::uint64_t> joins;
  for (std::uint32_t rank = 0; rank < 100; ++rank) {
    if (rank == 42) continue;
    joins.push_back(driver.call(driver.connect(), join(rank, 100), 5s));
    driver.now += 1ms;
  }
  driver.pass(6s);
  const auto replies = driver.take_replies();
  for (const std::uint64_t id : joins) {
    const Error error = error_in(replies.at(id));
    CHECK(error.code == ErrorCode::timed_out);
    CHECK(error.rank_ranges == std::vector<RankRange>{{42, 42}});
    CHECK_FALSE(error.ranks.front().joined);
  }
  CHECK(driver.engine.counts().groups == 0);
}

TEST_CASE("the death of many is told to the others, but not one by one") {
  GroupDriver driver;
  const auto ranks = driver.form(256);
  for (std::size_t rank = 128; rank < 256; ++rank) {
    driver.apply(core::Disconnected{ranks[rank]});
  }
  driver.effects.clear();
  for (int second = 0; second < 4; ++second) {
    for (std::size_t rank = 0; rank < 128; ++rank) driver.apply(core::Heard{ranks[rank]});
    driver.pass(1s);
  }
  int events = 0;
  const core::SendEvent* last = nullptr;
  for (const core::Effect& effect : driver.effects) {
    const auto* event = std::get_if<core::SendEvent>(&effect);
    if (event == nullptr || event->connection != ranks[0]) continue;
    ++events;
    last = event;
  }
  CHECK(events <= 7);  // one event tells no more than so many
  REQUIRE(last != nullptr);
  const auto event =
      wire::decode_event(static_cast<std::uint16_t>(last->kind), *last->body).value();
  CHECK(event.error.rank_ranges == std::vector<RankRange>{{128, 255}});
  CHECK(event.error.ranks.size() == 64);
}

TEST_CASE("when many leave one after the other, the others are not told of each") {
  GroupDriver driver;
  const auto ranks = driver.form(256);
  for (std::size_t rank = 1; rank < 256; ++rank)
    driver.call(ranks[rank], wire::Leave{driver.epoch});
  driver.pass(1s);
  int events = 0;
  std::vector<RankRange> told;
  for (const core::Effect& effect : driver.effects) {
    const auto* event = std::get_if<core::SendEvent>(&effect);
    if (event == nullptr) continue;
    ++events;
    if (event->connection != ranks[0]) continue;
    told = wire::decode_event(static_cast<std::uint16_t>(event->kind), *event->body)
               .value()
               .error.rank_ranges;
  }
  CHECK(events < 9 * 256);
  CHECK(told == std::vector<RankRange>{{1, 255}});
}

TEST_CASE("survivors of a large group regroup, then grow with candidates") {
  GroupDriver driver;
  const auto ranks = driver.form(64);
  for (std::size_t rank = 0; rank < 64; rank += 2) driver.apply(core::Goodbye{ranks[rank]});
  driver.effects.clear();
  for (std::size_t rank = 1; rank < 64; rank += 2) driver.call(ranks[rank], regroup(driver));
  auto replies = driver.take_replies();
  CHECK(replies.size() == 32);
  for (const auto& [id, reply] : replies) CHECK(world_size_in(reply) == 32);

  driver.epoch += 1;
  std::vector<core::ConnectionId> candidates;
  for (std::uint32_t rank = 32; rank < 64; ++rank) {
    candidates.push_back(driver.connect());
    driver.effects.clear();
    driver.call(candidates.back(), join(rank, 64, true));
  }
  for (std::size_t rank = 1; rank < 64; rank += 2) driver.call(ranks[rank], regroup(driver, 64));
  replies = driver.take_replies();
  CHECK(replies.size() == 64);
  for (const auto& [id, reply] : replies) CHECK(world_size_in(reply) == 64);
  CHECK(driver.engine.counts().epochs == 1);
}

TEST_CASE("a regroup and a collective that wait for each other are told at once") {
  GroupDriver driver;
  const auto ranks = driver.form(3);
  const std::uint64_t regrouping = driver.call(ranks[0], regroup(driver));
  SUBCASE("when the collective comes second") {
    const std::uint64_t calling = driver.barrier(ranks[1], 1);
    const auto replies = driver.take_replies();
    for (const std::uint64_t id : {regrouping, calling}) {
      const Error error = error_in(replies.at(id));
      CHECK(error.code == ErrorCode::collective_mismatch);
      CHECK(error.rank_ranges == std::vector<RankRange>{{0, 1}});
      CHECK(error.ranks[0].called == "regroup");
      CHECK(error.ranks[1].called == "barrier");
    }
    // Who comes late gets the round's and the attempt's outcome, and all are in step.
    driver.barrier(ranks[2], 1);
    driver.barrier(ranks[0], 1);
    driver.call(ranks[1], regroup(driver));
    driver.call(ranks[2], regroup(driver));
    for (const auto& [id, reply] : driver.take_replies()) {
      CHECK(error_in(reply).code == ErrorCode::collective_mismatch);
    }
    for (const core::ConnectionId rank : ranks) driver.call(rank, regroup(driver, 0, 2));
    for (const auto& [id, reply] : driver.take_replies()) CHECK(world_size_in(reply) == 3);
  }
  SUBCASE("when other sizes are asked for") {
    const std::uint64_t other = driver.call(ranks[1], regroup(driver, 3));
    const auto replies = driver.take_replies();
    for (const std::uint64_t id : {regrouping, other}) {
      const Error error = error_in(replies.at(id));
      CHECK(error.code == ErrorCode::collective_mismatch);
      CHECK(error.ranks[0].called == "regroup");
      CHECK(error.ranks[1].called == "regroup size=3");
    }
  }
}

TEST_CASE("a regroup that comes when others wait in a round ends both") {
  GroupDriver driver;
  const auto ranks = driver.form(3);
  const std::uint64_t calling = driver.barrier(ranks[1], 1);
  const std::uint64_t regrouping = driver.call(ranks[0], regroup(driver));
  const auto replies = driver.take_replies();
  for (const std::uint64_t id : {regrouping, calling}) {
    const Error error = error_in(replies.at(id));
    CHECK(error.code == ErrorCode::collective_mismatch);
    CHECK(error.ranks[0].called == "regroup");
    CHECK(error.ranks[1].called == "barrier");
  }
}

TEST_CASE("a regroup whose caller gave up is decided at its deadline all the same") {
  GroupDriver driver;
  const auto ranks = driver.form(2);
  const std::vector<std::uint64_t> abandoned{driver.call(ranks[0], regroup(driver), 5s)};
  driver.apply(core::Abandoned{ranks[0], &abandoned});
  driver.pass(6s);
  driver.effects.clear();
  const std::uint64_t late = driver.call(ranks[1], regroup(driver));
  const Error error = error_in(driver.take_replies().at(late));
  CHECK(error.code == ErrorCode::timed_out);
  CHECK(error.decided_by_rank == 0);
  CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
}

TEST_CASE("an engine can be destroyed with groups in every state") {
  GroupDriver driver;
  const auto ranks = driver.form(3);
  driver.barrier(ranks[0], 1);
  driver.call(ranks[1], wire::Receive{driver.epoch, 0, 0, 0, 0});
  driver.call(ranks[2], wire::Send{driver.epoch, 0, 0, 0, 0, "v"});
  driver.call(driver.connect(), join(7, 8, true));
  driver.call(driver.connect(), wire::Join{"forming", 0, 2, 1h, false, "info"});
  driver.effects.clear();
  const auto broken = driver.form(2, "broken");
  driver.apply(core::Disconnected{broken[0]});
  driver.pass(3s);
  driver.effects.clear();
}
