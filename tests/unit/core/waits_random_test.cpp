#include <array>
#include <map>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "engine_driver.h"

// Random waits on few keys while the keys come and go, by seeds: each request gets one answer, the
// right one, and none is left behind.

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

constexpr std::array<std::string_view, 4> keys = {"a", "b", "c", "d"};

/// A request that is not answered yet.
struct Pending {
  wire::Operation operation;
  std::vector<std::string_view> keys;
  core::ConnectionId connection;
  core::Instant deadline;
};

class WaitsPlay {
 public:
  explicit WaitsPlay(unsigned seed) : random_(seed) {
    for (core::ConnectionId& connection : connections_) connection = driver_.connect();
  }

  void step() {
    const core::ConnectionId from = connections_[random_() % connections_.size()];
    switch (random_() % 10) {
      case 0:
      case 1:
      case 2: park(from); break;
      case 3:
      case 4: put(from); break;
      case 5: change(from, wire::Remove{{some_key()}}); break;
      case 6: put_two(from); break;
      case 7: abandon(); break;
      case 8:
        if (random_() % 10 == 0) replace_a_session();
        break;
      default: driver_.pass(Duration(static_cast<int>(random_() % 30000)));
    }
    take_answers();
    check();
  }

  void finish() {
    driver_.pass(1s);  // longer than any timeout
    take_answers();
    CHECK(pending_.empty());
    CHECK(driver_.engine.counts().waits == 0);
    for (const core::ConnectionId connection : connections_)
      change(connection, wire::Remove{{keys.begin(), keys.end()}});
    for (const core::ConnectionId connection : connections_)
      driver_.apply(core::Goodbye{connection});
    driver_.effects.clear();
    driver_.pass(1s);
    CHECK(driver_.engine.counts().keys == 0);
    CHECK(driver_.engine.counts().timers == 0);
    CHECK(driver_.engine.counts().memory_bytes == 0);
  }

 private:
  std::string_view some_key() { return keys[random_() % keys.size()]; }

  void park(core::ConnectionId from) {
    const Duration timeout(static_cast<int>(random_() % 200000) + 1);
    std::vector<std::string_view> wanted = {some_key()};
    wire::RequestBody body = wire::Get{wanted[0]};
    if (random_() % 3 == 0) body = wire::Take{wanted[0]};
    if (random_() % 3 == 0) {
      for (auto count = random_() % 3; count > 0; --count) wanted.push_back(some_key());
      body = wire::Wait{wanted};
    }
    const wire::Operation operation = wire::operation_of(body);
    const std::uint64_t id = driver_.ask(from, std::move(body), timeout);
    pending_.emplace(id, Pending{operation, std::move(wanted), from, driver_.now + timeout});
  }

  void change(core::ConnectionId from, wire::RequestBody body) {
    const std::uint64_t id = driver_.ask(from, std::move(body));
    const auto reply = driver_.reply(id);
    REQUIRE(reply.has_value());
    CHECK(reply->code == 0);
    acknowledge(from, id);
  }
  wire::Ttl some_ttl() {
    if (random_() % 2 == 0) return std::nullopt;
    return Duration(static_cast<int>(random_() % 50000) + 1);
  }
  void put(core::ConnectionId from) {
    change(from, wire::Set{some_key(), "v", some_ttl(), false, random_() % 4 == 0});
  }
  void put_two(core::ConnectionId from) {
    change(from, wire::MultiSet{{{some_key(), "v"}, {some_key(), "w"}}, some_ttl()});
  }

  void abandon() {
    if (pending_.empty()) return;
    const auto victim =
        std::next(pending_.begin(), static_cast<std::ptrdiff_t>(random_() % pending_.size()));
    const std::vector<std::uint64_t> ids = {victim->first};
    driver_.apply(core::Abandoned{victim->second.connection, &ids});
    pending_.erase(victim);
  }
  void replace_a_session() {
    core::ConnectionId& connection = connections_[random_() % connections_.size()];
    driver_.apply(core::Goodbye{connection});
    std::erase_if(pending_, [&](const auto& one) { return one.second.connection == connection; });
    connection = driver_.connect();
  }

  void acknowledge(core::ConnectionId from, std::uint64_t id) {
    const std::vector<std::uint64_t> ids = {id};
    driver_.apply(core::Acknowledged{from, &ids});
  }
  void take_answers() {
    std::vector<core::Effect> effects;
    effects.swap(driver_.effects);
    for (const core::Effect& effect : effects) {
      const auto* reply = std::get_if<core::SendReply>(&effect);
      if (reply == nullptr) continue;
      const auto pending = pending_.find(reply->request_id);
      REQUIRE(pending != pending_.end());  // neither unknown nor answered before
      const bool timed_out = code_of(*reply) == ErrorCode::timed_out;
      CHECK((reply->code == 0 || timed_out));
      if (timed_out) CHECK(driver_.now >= pending->second.deadline);
      acknowledge(pending->second.connection, reply->request_id);
      pending_.erase(pending);
    }
  }

  /// Nobody waits for what is there, and nobody waits past the deadline.
  void check() {
    CHECK(driver_.engine.counts().waits == pending_.size());
    const std::uint64_t id = driver_.ask(connections_[0], wire::Exists{{keys.begin(), keys.end()}});
    const auto reply = driver_.reply(id);
    const auto present = wire::decode_body<wire::PresenceReply>(reply->head).value().present;
    for (const auto& [number, one] : pending_) {
      std::size_t there = 0;
      for (const std::string_view key : one.keys) {
        there += present[static_cast<std::size_t>(key[0] - 'a')] ? 1 : 0;
      }
      CHECK(there < one.keys.size());
      CHECK(driver_.now < one.deadline + 1ms);
    }
  }

  std::mt19937 random_;
  EngineDriver driver_;
  std::array<core::ConnectionId, 3> connections_{};
  std::map<std::uint64_t, Pending> pending_;
};

}  // namespace

TEST_CASE("whoever waits for keys gets one right answer, whatever happens meanwhile") {
  for (unsigned seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    WaitsPlay play(seed);
    for (int count = 0; count < 500; ++count) play.step();
    play.finish();
  }
}
