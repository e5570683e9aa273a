#include <cstring>

#include <doctest/doctest.h>

#include "engine_driver.h"
#include "support/allocations.h"

// What the quota is charged must be what memory is taken, or the limit means nothing. A program
// of its own, because it watches the allocator.

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

/// Memory taken and memory charged, per item.
struct Cost {
  double taken;
  double charged;
};

template <class Make>
Cost cost_of(EngineDriver& driver, int count, Make&& make) {
  driver.effects.clear();
  const std::int64_t taken_before = allocated().live_bytes;
  const auto charged_bytes = [&] {
    return static_cast<std::int64_t>(driver.engine.counts().memory_bytes);
  };
  const std::int64_t charged_before = charged_bytes();
  for (int number = 0; number < count; ++number) {
    make(number);
    if (driver.effects.size() > 32) {
      driver.effects.erase(driver.effects.begin(), driver.effects.begin() + 16);
    }
  }
  driver.effects.clear();
  driver.effects.shrink_to_fit();
  const auto per_item = [&](std::int64_t bytes) { return static_cast<double>(bytes) / count; };
  const Cost cost{per_item(allocated().live_bytes - taken_before),
                  per_item(charged_bytes() - charged_before)};
  MESSAGE("taken ", cost.taken, " charged ", cost.charged);
  return cost;
}

std::string key_of(int number) { return "some/prefix/of/keys/" + std::to_string(1000000 + number); }

}  // namespace

TEST_CASE("a key is charged what it takes") {
  for (const std::size_t value_bytes : {std::size_t{8}, std::size_t{64}, std::size_t{1000}}) {
    CAPTURE(value_bytes);
    EngineDriver driver;
    const core::ConnectionId a = driver.connect();
    const std::string value(value_bytes, 'x');
    const Cost cost = cost_of(driver, 50000, [&](int number) {
      driver.ask(a, wire::Set{key_of(number), value, {}, false, false});
    });
    CHECK(cost.charged > 0.9 * cost.taken);
    CHECK(cost.charged < 1.25 * cost.taken);
  }
}

TEST_CASE("a key with a TTL is charged what it takes") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  const Cost cost = cost_of(driver, 50000, [&](int number) {
    driver.ask(a, wire::Set{key_of(number), "value", Duration(1h), false, true});
  });
  CHECK(cost.charged > 0.9 * cost.taken);
  CHECK(cost.charged < 1.25 * cost.taken);
}

TEST_CASE("a parked get is charged what it takes") {
  core::Options options;
  options.limits.parked_waits_max = 50000;
  EngineDriver driver(options);
  const core::ConnectionId a = driver.connect();
  const Cost cost =
      cost_of(driver, 50000, [&](int number) { driver.ask(a, wire::Get{key_of(number)}, 1h); });
  CHECK(cost.charged > 0.9 * cost.taken);
  CHECK(cost.charged < 1.25 * cost.taken);
}

TEST_CASE("an answer in the cache is charged what it takes") {
  core::Options options;
  options.limits.cached_results_max = 1000000;
  EngineDriver driver(options);
  const core::ConnectionId a = driver.connect();
  const std::vector<std::uint64_t> none;
  const Cost cost = cost_of(driver, 50000, [&](int) {
    driver.effects.clear();  // nothing is acknowledged
    driver.ask(a, wire::Add{"k", 1});
  });
  CHECK(cost.charged > 0.9 * cost.taken);
  CHECK(cost.charged < 1.25 * cost.taken);
}

TEST_CASE("a small operation that does not wait allocates nothing once it is warm") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  const std::string_view key = "a key that a string does not hold itself";
  const std::string_view value = "a value that a string does not hold itself";
  driver.ask(a, wire::Set{key, value, {}, false, false});
  driver.ask(a, wire::Add{"number", 1});
  driver.ask(a, wire::Status{});  // which acknowledges
  const std::vector<wire::RequestBody> bodies = {
      wire::Get{key},
      wire::Set{key, value, {}, false, false},
      wire::Set{key, value, Duration(1h), false, false},
      wire::Add{"number", 1},
      wire::CompareSet{key, value, value, {}},
      wire::Touch{key, Duration(1h)},
  };
  std::uint64_t id = 100;
  for (const wire::RequestBody& body : bodies) {
    CAPTURE(wire::name_of(wire::operation_of(body)));
    wire::Request request;
    request.body = body;
    const auto ask_once = [&] {
      request.acknowledged.assign(1, id);
      request.id = ++id;
      driver.engine.apply(core::Requested{a, &request}, driver.now);
    };
    for (int count = 0; count < 10; ++count) ask_once();
    CHECK(bytes_allocated_by([&] {
            for (int count = 0; count < 100; ++count) ask_once();
          }) == 0);
  }
  const std::vector<std::uint64_t> none;
  CHECK(bytes_allocated_by([&] {
          driver.engine.apply(core::Heartbeat{a, 1, &none}, driver.now);
        }) == 0);
}

TEST_CASE("a key takes one allocation, and what many share") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  std::vector<std::string> keys;
  for (int number = 0; number < 10'000; ++number) keys.push_back(key_of(number));
  wire::Request request;
  std::uint64_t id = 100;
  const std::string value(64, 'v');
  const std::uint64_t before = allocations_of_process();
  for (const std::string& key : keys) {
    request.acknowledged.assign(1, id);
    request.id = ++id;
    request.body = wire::Set{key, value, {}, false, false};
    driver.engine.apply(core::Requested{a, &request}, driver.now);
  }
  const std::uint64_t taken = allocations_of_process() - before;
  CHECK(taken >= keys.size());
  CHECK(taken <= keys.size() + keys.size() / 20);
}

TEST_CASE("what a large table took is given back when its keys go") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  const std::int64_t before = allocated().live_bytes;
  cost_of(driver, 50000, [&](int number) {
    driver.ask(a, wire::Set{key_of(number), "value", {}, false, false});
  });
  const std::int64_t full = allocated().live_bytes;
  cost_of(driver, 50000, [&](int number) {
    const std::string key = key_of(number);
    driver.ask(a, wire::Remove{{key}});
  });
  CHECK(allocated().live_bytes - before < (full - before) / 20);
}

TEST_CASE("processes that come and go leave nothing behind") {
  EngineDriver driver;
  const core::ConnectionId stays = driver.connect();
  std::uint64_t number = 1'000'000;  // of the connection, and in the id of its process
  const auto come_and_go = [&](int count) {
    for (const std::uint64_t last = number + static_cast<std::uint64_t>(count); number < last;) {
      core::Hello hello;
      hello.connection = ++number;
      std::memcpy(hello.hello.process.id.bytes.data(), &number, sizeof number);
      driver.apply(hello);
      driver.apply(core::Echo{number, hello.fresh_token});
      driver.ask(number, wire::Set{"bound", "value", {}, false, true});
      driver.ask(number, wire::Get{key_of(static_cast<int>(number))}, 1h);
      driver.ask(number, wire::Get{"awaited"}, 1h);
      driver.ask(stays, wire::Set{"awaited", "value", {}, false, false});
      driver.ask(stays, wire::Remove{{"awaited"}});
      driver.apply(core::Goodbye{number});
      driver.effects.clear();
    }
    return allocated().live_bytes;
  };
  driver.ask(stays, wire::Status{});
  const std::int64_t before = come_and_go(5000);  // so many closed connections are remembered
  const std::int64_t after = come_and_go(5000);
  CHECK(after - before < 10'000);
}
