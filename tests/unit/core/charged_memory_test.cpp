#include "core/memory/charged_memory.h"

#include <cstring>

#include <doctest/doctest.h>

#include "engine_driver.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

/// A request as it lies in the memory that it was read into.
struct Brought {
  Brought(core::Quota& quota, std::string_view key, std::string_view value) : memory(quota) {
    REQUIRE(memory.grow(key.size() + value.size(), 0, core::Charging::normal));
    std::memcpy(memory.begin(), key.data(), key.size());
    std::memcpy(memory.begin() + key.size(), value.data(), value.size());
    set.key = {memory.begin(), key.size()};
    set.value = {memory.begin() + key.size(), value.size()};
  }

  std::uint64_t ask(EngineDriver& driver, core::ConnectionId connection) {
    wire::Request request;
    request.id = driver.next_request_id();
    request.body = set;
    driver.apply(core::Requested{connection, &request, &memory});
    return request.id;
  }

  core::ChargedMemory memory;
  wire::Set set;
};

std::optional<std::string> value_at(EngineDriver& driver, core::ConnectionId connection,
                                    std::string_view key) {
  return value_of(*driver.reply(driver.ask(connection, wire::Get{key})));
}

const std::string long_value(100'000, 'v');

}  // namespace

TEST_CASE("memory grows with what is in it, and is charged while it lives") {
  core::Quota quota(10'000);
  {
    core::ChargedMemory memory(quota);
    REQUIRE(memory.grow(100, 0, core::Charging::normal));
    std::memset(memory.begin(), 'x', 100);
    REQUIRE(memory.grow(5000, 0, core::Charging::normal));
    CHECK(std::string_view(memory.begin(), 100) == std::string(100, 'x'));
    CHECK(quota.used_bytes() == 5000);
    CHECK_FALSE(memory.grow(20'000, 0, core::Charging::normal));
    CHECK(memory.size_bytes() == 5000);
    CHECK(std::string_view(memory.begin(), 100) == std::string(100, 'x'));
    REQUIRE(memory.grow(20'000, 0, core::Charging::always));
    CHECK(quota.used_bytes() == 20'000);
  }
  CHECK(quota.used_bytes() == 0);
}

TEST_CASE("memory that is to grow on is where it can, and is charged for what is used") {
  core::Quota quota(10'000'000);
  core::ChargedMemory memory(quota);
  REQUIRE(memory.grow(100, 1'000'000, core::Charging::normal));
  const char* const place = memory.begin();
  CHECK(quota.used_bytes() == 100);
  REQUIRE(memory.grow(700'000, 0, core::Charging::normal));
  CHECK(memory.begin() == place);
  CHECK(quota.used_bytes() == 700'000);
  // To take it over would keep much that is not used.
  CHECK_FALSE(memory.is_mostly({memory.begin(), 700'000}));
  REQUIRE(memory.grow(1'000'000, 0, core::Charging::normal));
  CHECK(memory.begin() == place);
  CHECK(memory.is_mostly({memory.begin(), 1'000'000}));
}

TEST_CASE("memory is taken over where it lies, once, with its charge") {
  core::Quota quota(10'000);
  core::ChargedMemory memory(quota);
  REQUIRE(memory.grow(8000, 0, core::Charging::normal));
  std::memset(memory.begin(), 'x', 8000);
  const std::string_view most(memory.begin() + 500, 7500);
  const std::string_view half(memory.begin(), 4000);
  const std::string elsewhere(8000, 'x');
  CHECK(memory.is_mostly(most));
  CHECK_FALSE(memory.is_mostly(half));
  CHECK_FALSE(memory.is_mostly(elsewhere));
  core::Payload payload = memory.take_over(quota, most, core::Charging::normal);
  REQUIRE(payload != nullptr);
  CHECK(payload->view().data() == most.data());
  CHECK(payload->view().size() == most.size());
  CHECK(memory.size_bytes() == 0);
  CHECK_FALSE(memory.is_mostly(most));
  CHECK(quota.used_bytes() == 8000 + core::payload_overhead_bytes);
  payload.reset();
  CHECK(quota.used_bytes() == 0);
}

TEST_CASE("memory that another quota refuses to take over stays what it was") {
  core::Quota server(10'000);
  core::Quota small(5000, &server);
  core::ChargedMemory memory(server);
  REQUIRE(memory.grow(8000, 0, core::Charging::normal));
  const std::string_view all(memory.begin(), 8000);
  CHECK(memory.take_over(small, all, core::Charging::normal) == nullptr);
  CHECK(memory.size_bytes() == 8000);
  CHECK(memory.begin() == all.data());
  CHECK(server.used_bytes() == 8000);
  CHECK(small.used_bytes() == 0);
}

TEST_CASE("a long value is kept in the memory that its request came in") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  Brought brought(driver.engine.memory().all, "key", long_value);
  const char* const place = brought.set.value.data();
  CHECK(driver.reply(brought.ask(driver, a))->code == 0);
  CHECK(brought.memory.size_bytes() == 0);
  const auto got = driver.reply(driver.ask(a, wire::Get{"key"}));
  REQUIRE(got);
  REQUIRE(got->tail != nullptr);
  CHECK(got->tail->view().data() == place);
  CHECK(got->tail->view() == long_value);
}

TEST_CASE("a short value is copied, and so is one that is little of its request") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  Brought brought(driver.engine.memory().all, "key", "short");
  brought.ask(driver, a);
  CHECK(brought.memory.size_bytes() != 0);
  CHECK(value_at(driver, a, "key") == "short");
  Brought padded(driver.engine.memory().all, std::string(50'000, 'p'), std::string(60'000, 'v'));
  padded.set.key = "other";
  padded.ask(driver, a);
  CHECK(padded.memory.size_bytes() != 0);
  CHECK(value_at(driver, a, "other") == std::string(60'000, 'v'));
}

TEST_CASE("what is not kept stays where it is") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  driver.ask(a, wire::Set{"key", "there", {}, false, false});
  Brought brought(driver.engine.memory().all, "key", long_value);
  brought.set.only_if_absent = true;
  brought.ask(driver, a);
  CHECK(brought.memory.size_bytes() != 0);
  CHECK(value_at(driver, a, "key") == "there");
}

TEST_CASE("a value that is gone again before its request is done is no trouble") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  const core::ConnectionId b = driver.connect();
  const std::uint64_t waiting = driver.ask(b, wire::Take{"key"}, 10s);
  Brought brought(driver.engine.memory().all, "key", long_value);
  CHECK(driver.reply(brought.ask(driver, a))->code == 0);
  const auto taken = driver.reply(waiting);
  REQUIRE(taken);
  CHECK(value_of(*taken) == long_value);
  CHECK(code_of(*driver.reply(driver.ask(a, wire::Get{"key"}))) == ErrorCode::not_found);
}

TEST_CASE("a value fits although the limit has no room for it twice") {
  core::Options options;
  options.memory_bytes_max = 150'000;
  EngineDriver driver(options);
  const core::ConnectionId a = driver.connect();
  Brought brought(driver.engine.memory().all, "key", long_value);
  CHECK(driver.reply(brought.ask(driver, a))->code == 0);
  CHECK(value_at(driver, a, "key") == long_value);
}
