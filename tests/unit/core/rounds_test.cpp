#include <doctest/doctest.h>

#include "group_driver.h"

// Rounds: what they cost, what they leave behind, and how they behave with many ranks. The rules
// themselves are scripts.

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

wire::CollectiveCall gather_all(const GroupDriver& driver, std::uint64_t round,
                                std::string_view value) {
  return {driver.epoch, round, wire::Collective::all_gather, 0, 0, {value}};
}

wire::CollectiveCall broadcast(const GroupDriver& driver, std::uint64_t round,
                               std::vector<std::string_view> values = {}) {
  return {driver.epoch, round, wire::Collective::broadcast, 0, 0, std::move(values)};
}

}  // namespace

TEST_CASE("many barriers leave nothing behind") {
  GroupDriver driver;
  const auto ranks = driver.form(4);
  const std::uint64_t memory = driver.engine.counts().memory_bytes;
  constexpr std::uint64_t count = 20'000;
  for (std::uint64_t round = 1; round <= count; ++round) {
    for (const core::ConnectionId rank : ranks) driver.barrier(rank, round);
    REQUIRE(driver.count<core::SendReply>() == 3);  // rank 0 leaves last
    driver.acknowledge_all();
  }
  const core::Counts counts = driver.engine.counts();
  CHECK(counts.memory_bytes == memory);
  CHECK(counts.rounds == 0);
  CHECK(counts.waits == 0);
  CHECK(counts.cached_results == 0);
}

TEST_CASE("a collective costs each rank one reply") {
  GroupDriver driver;
  const auto ranks = driver.form(64);
  for (const core::ConnectionId rank : ranks) driver.call(rank, gather_all(driver, 1, "x"));
  CHECK(driver.effects.size() == 64);
  driver.acknowledge_all();
  driver.call(ranks[0], broadcast(driver, 2, {"x"}));
  for (std::size_t rank = 1; rank < 64; ++rank) driver.call(ranks[rank], broadcast(driver, 2));
  CHECK(driver.effects.size() == 64);
  driver.acknowledge_all();
  for (const core::ConnectionId rank : ranks) driver.barrier(rank, 3);
  CHECK(driver.effects.size() == 63);
  driver.acknowledge_all();
  CHECK(driver.engine.counts().rounds == 0);
}

TEST_CASE("the values of an all_gather are held once for all ranks") {
  GroupDriver driver;
  const auto ranks = driver.form(8);
  const std::string value(10'000, 'v');
  for (const core::ConnectionId rank : ranks) driver.call(rank, gather_all(driver, 1, value));
  const core::Payload shared = std::get<core::SendReply>(driver.effects.front()).tail;
  for (const core::Effect& effect : driver.effects) {
    CHECK(std::get<core::SendReply>(effect).head.empty());
    CHECK(std::get<core::SendReply>(effect).tail == shared);
  }
  CHECK(driver.engine.counts().memory_bytes < 100'000);
  CHECK(driver.engine.counts().objects == 1);
}

TEST_CASE("the value of a broadcast is held once, however many ranks have yet to take it") {
  GroupDriver driver;
  constexpr std::size_t count = 1024;
  constexpr std::size_t mebibyte = 1U << 20;
  const auto ranks = driver.form(count);
  const std::uint64_t memory = driver.engine.counts().memory_bytes;
  const std::string value(mebibyte, 'v');
  driver.call(ranks[0], broadcast(driver, 1, {value}));
  for (std::size_t rank = 1; rank < count; ++rank) driver.call(ranks[rank], broadcast(driver, 1));
  const core::Payload shared = std::get<core::SendReply>(driver.effects.back()).tail;
  REQUIRE(shared != nullptr);
  CHECK(shared->view().size() == mebibyte);
  std::size_t same = 0;
  for (const core::Effect& effect : driver.effects) {
    same += std::get<core::SendReply>(effect).tail == shared ? 1 : 0;
  }
  CHECK(same == count - 1);
  CHECK(driver.engine.counts().memory_bytes - memory < mebibyte + mebibyte / 2);
}

TEST_CASE("a time-out names 64 ranks in full and all of them as ranges") {
  GroupDriver driver;
  const auto ranks = driver.form(200);
  for (const std::size_t rank : {0u, 100u}) driver.barrier(ranks[rank], 1, 5s);
  driver.pass(6s);
  const auto replies = driver.take_replies();
  REQUIRE(replies.size() == 2);
  const Error error = error_in(replies.begin()->second);
  CHECK(error.code == ErrorCode::timed_out);
  CHECK(error.ranks.size() == 64);
  CHECK(error.rank_ranges == std::vector<RankRange>{{1, 99}, {101, 199}});
  CHECK(error.decided_by_rank == 0);
  CHECK(error.decided_by_timeout == 5s);
  CHECK(error.round == 1);

  SUBCASE("and it is held once, whoever comes late") {
    for (std::size_t rank = 1; rank < 100; ++rank) driver.barrier(ranks[rank], 1, 5s);
    for (const auto& [id, late] : driver.take_replies()) {
      CHECK(late.tail == replies.begin()->second.tail);
    }
  }
}

TEST_CASE("a rank that calls something else is named in full among many others") {
  GroupDriver driver;
  const auto ranks = driver.form(200);
  for (std::size_t rank = 0; rank < 199; ++rank) driver.barrier(ranks[rank], 1);
  driver.call(ranks[199], gather_all(driver, 1, "x"));
  const auto replies = driver.take_replies();
  CHECK(replies.size() == 200);
  const Error error = error_in(replies.begin()->second);
  CHECK(error.code == ErrorCode::collective_mismatch);
  CHECK(error.ranks.size() == 64);
  CHECK(error.ranks.front().called == "barrier");
  CHECK(error.ranks.back().rank == 199);
  CHECK(error.ranks.back().called == "all_gather codec=0");
}

TEST_CASE("rounds that a sleeping rank has yet to see are bounded") {
  core::Options options;
  options.open_rounds_max = 8;
  GroupDriver driver(options);
  const auto ranks = driver.form(2);
  int timed_out = 0;
  Error last;
  std::uint64_t round = 1;
  for (int call = 0; call < 40; ++call) {
    const std::uint64_t id = driver.barrier(ranks[0], round, 1s);
    driver.pass(2s);
    driver.apply(core::Heard{ranks[0]});
    driver.apply(core::Heard{ranks[1]});
    const core::SendReply reply = driver.take_replies().at(id);
    driver.acknowledge(ranks[0], {id});
    last = error_in(reply);
    if (last.code != ErrorCode::timed_out) break;
    ++timed_out;
    ++round;
  }
  CHECK(timed_out == 16);
  CHECK(last.code == ErrorCode::resource_exhausted);
  CHECK(last.limit == 8);
  CHECK(last.rank_ranges == std::vector<RankRange>{{1, 1}});
  CHECK(last.round == 0);  // it did not count

  // The sleeper wakes up and catches up; then there is room again.
  for (std::uint64_t old = 1; old < round; ++old) driver.barrier(ranks[1], old);
  CHECK(driver.take_replies().size() == 16);
  driver.apply(core::Heard{ranks[1]});
}

TEST_CASE("a value that is not fetched yet is given back when the last one who wants it dies") {
  GroupDriver driver;
  const auto ranks = driver.form(3);
  const std::uint64_t memory = driver.engine.counts().memory_bytes;
  const std::string value(100'000, 'v');
  driver.call(ranks[0], broadcast(driver, 1, {value}));
  driver.call(ranks[1], broadcast(driver, 1));
  driver.acknowledge_all();
  CHECK(driver.engine.counts().memory_bytes > 100'000);
  driver.apply(core::Goodbye{ranks[2]});
  driver.effects.clear();
  CHECK(driver.engine.counts().rounds == 0);
  CHECK(driver.engine.counts().memory_bytes <= memory);
}

TEST_CASE("a member that recovers again and again keeps no more answers than others") {
  core::Options options;
  options.limits.cached_results_max = 8;
  GroupDriver driver(options);
  const auto ranks = driver.form(1);
  driver.call(ranks[0], gather_all(driver, 1, "v"));
  const std::uint64_t before = driver.engine.counts().cached_results;
  for (int count = 0; count < 100; ++count) {
    driver.call(ranks[0], wire::Recover{driver.epoch, 1, {}});
  }
  CHECK(driver.engine.counts().cached_results <= before + 8);
  const auto replies = driver.take_replies();
  CHECK(code_of(replies.rbegin()->second) == ErrorCode::resource_exhausted);
}

TEST_CASE("a member that recovers twice gets the same outcome twice") {
  GroupDriver driver;
  const auto ranks = driver.form(2);
  for (const core::ConnectionId rank : ranks) driver.call(rank, gather_all(driver, 1, "v"));
  driver.effects.clear();
  std::vector<std::string> bodies;
  for (int time = 0; time < 2; ++time) {
    driver.call(ranks[1], wire::Recover{driver.epoch, 1, {}});
    bodies.push_back(body_of(driver.take_replies().begin()->second));
  }
  CHECK(bodies[0] == bodies[1]);
  const auto recovered = wire::decode_body<wire::RecoverReply>(bodies[0]).value();
  CHECK(recovered.state == wire::RoundState::done);
  CHECK(recovered.round.values == std::vector<std::string_view>{"v", "v"});
}

TEST_CASE("a barrier of thousands of ranks is decided once for all") {
  GroupDriver driver;
  const auto ranks = driver.form(4096);
  for (std::uint64_t round = 1; round <= 3; ++round) {
    for (const core::ConnectionId rank : ranks) driver.barrier(rank, round);
    CHECK(driver.count<core::SendReply>() == 4095);
    driver.acknowledge_all();
  }
  CHECK(driver.engine.counts().rounds == 0);
}
