#include <doctest/doctest.h>

#include "core/keys/block.h"
#include "engine_driver.h"

// What scripts cannot see well: bounds, bursts, and what is left behind.

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

wire::Set set(std::string_view key) { return {key, "v", {}, false, false}; }

std::optional<Error> error_of(const std::optional<core::SendReply>& reply) {
  if (!reply || reply->code == 0) return std::nullopt;
  return wire::decode_error(reply->code, reply->head);
}

}  // namespace

TEST_CASE("an engine can be destroyed with everything in it") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect("one");
  const core::ConnectionId b = driver.connect("two");
  for (const core::ConnectionId connection : {a, b}) {
    driver.ask(connection, wire::Set{"bound", "v", Duration(5s), false, true});
    driver.ask(connection, wire::Take{"absent"}, 10s);
    driver.ask(connection, wire::Wait{{"bound", "absent", "other"}}, 10s);
  }
  driver.apply(core::Goodbye{a});
  driver.effects.clear();  // a rim lets go of payloads before it lets go of the engine
}

TEST_CASE("a session ends in time although its request, which waits for room, is tried again") {
  EngineDriver driver;
  const Duration session_timeout = driver.engine.options().limits.session_timeout;
  const core::ConnectionId a = driver.connect();
  wire::Request request;
  request.id = driver.next_request_id();
  request.body = wire::List{};
  core::Requested event{a, &request};
  event.unsent.uncharged_bytes = std::uint64_t{1} << 40;
  for (Duration passed{}; passed < session_timeout * 9 / 10; passed += 1s) {
    driver.effects.clear();
    driver.apply(event);
    REQUIRE(driver.count<core::Postpone>() == 1);
    driver.pass(1s);
  }
  CHECK(driver.engine.counts().sessions == 1);
  driver.pass(session_timeout / 10 + driver.engine.options().limits.slack + 1s);
  CHECK(driver.engine.counts().sessions == 0);
}

TEST_CASE("an observer is denied what members of groups and supervisors do, and nothing else") {
  EngineDriver driver;
  const core::ConnectionId observer = driver.connect("", wire::Role::observer);
  std::vector<std::string_view> denied;
  const auto ask = [&]<class Body, class Reply>(const wire::Row<Body, Reply>& row) {
    const auto reply = driver.reply(driver.ask(observer, Body{}));
    const auto error = error_of(reply);
    if (error && error->code == ErrorCode::permission_denied) denied.push_back(row.name);
  };
  std::apply([&](const auto&... rows) { (ask(rows), ...); }, wire::operation_table);
  CHECK(denied == std::vector<std::string_view>{
                      "join", "leave", "regroup", "members", "report_dead", "cancel_regroup",
                      "collective", "cancel_round", "send", "receive", "expire_data", "recover",
                      "interrupt", "drop_namespace", "set_setting", "end_session", "drain"});
}

TEST_CASE("of all roles only a supervisor may declare a process dead, or drop a namespace") {
  EngineDriver driver;
  driver.connect();
  const core::ConnectionId victim = driver.connect();
  wire::ReportDead report;
  report.process.bytes[0] = static_cast<std::uint8_t>(victim);
  for (const wire::Role role : {wire::Role::client, wire::Role::observer}) {
    const auto reply = driver.reply(driver.ask(driver.connect("", role), report));
    CHECK(error_of(reply)->code == ErrorCode::permission_denied);
  }
  CHECK(driver.engine.counts().sessions == 4);
  const core::ConnectionId supervisor = driver.connect("", wire::Role::supervisor);
  CHECK(driver.reply(driver.ask(supervisor, report))->code == 0);
  CHECK(driver.engine.counts().sessions == 4);

  const core::ConnectionId visitor = driver.connect("dropped");
  driver.ask(visitor, set("k"));
  driver.apply(core::Goodbye{visitor});
  for (const wire::Role role : {wire::Role::client, wire::Role::observer}) {
    const core::ConnectionId other = driver.connect("", role);
    const auto denied = driver.reply(driver.ask(other, wire::DropNameSpace{"dropped"}));
    CHECK(error_of(denied)->code == ErrorCode::permission_denied);
  }
  CHECK(driver.engine.counts().keys == 1);
  CHECK(driver.reply(driver.ask(supervisor, wire::DropNameSpace{"dropped"}))->code == 0);
  CHECK(driver.engine.counts().keys == 0);
}

TEST_CASE("a place is free as soon as its namespace is dropped, whatever is left to be freed") {
  core::Options options;
  options.name_spaces.per_unit_max = 1;
  options.work_per_event_max = 4;
  EngineDriver driver(options);
  const core::ConnectionId supervisor = driver.connect("", wire::Role::supervisor);
  const core::ConnectionId reader = driver.connect("one");
  const std::string value(core::shared_value_bytes_min, 'v');
  for (int count = 0; count < 20; ++count) {
    driver.ask(reader, wire::Set{"k" + std::to_string(count), value, {}, false, false});
  }
  auto held = driver.reply(driver.ask(reader, wire::Get{"k0"}));  // a reply that is on its way
  driver.apply(core::Goodbye{reader});
  driver.effects.clear();
  driver.works_off = false;
  driver.connect("two");
  CHECK(driver.count<core::Close>() == 1);  // refused
  CHECK(driver.reply(driver.ask(supervisor, wire::DropNameSpace{"one"}))->code == 0);
  CHECK(driver.engine.has_backlog());
  const core::ConnectionId second = driver.connect("two");
  CHECK(driver.count<core::Close>() == 1);
  driver.ask(second, set("k"));
  driver.effects.clear();
  CHECK(driver.engine.counts().keys == 1);

  // When all is freed, only what is held by others is charged.
  driver.works_off = true;
  driver.pass(1s);
  const std::uint64_t before = driver.engine.counts().memory_bytes;
  CHECK(value_of(*held) == value);
  held.reset();
  CHECK(before - driver.engine.counts().memory_bytes > value.size());
  CHECK(driver.engine.counts().memory_bytes < value.size());
  driver.pass(1s);
}

TEST_CASE("answers to parked requests do not use up the room for other answers") {
  core::Options options;
  options.limits.cached_results_max = 4;
  options.limits.parked_waits_max = 8;
  EngineDriver driver(options);
  const core::ConnectionId taker = driver.connect();
  const core::ConnectionId setter = driver.connect();
  for (int count = 0; count < 8; ++count) {
    driver.ask(taker, wire::Take{"k" + std::to_string(count)}, 10s);
  }
  const std::uint64_t ninth = driver.ask(taker, wire::Take{"absent"}, 10s);
  CHECK(error_of(driver.reply(ninth))->code == ErrorCode::resource_exhausted);
  driver.effects.clear();

  for (int count = 0; count < 8; ++count) driver.ask(setter, set("k" + std::to_string(count)));
  // Eight answers are on their way to the taker and none is acknowledged.
  driver.effects.clear();
  const std::uint64_t one = driver.ask(taker, set("own"));
  CHECK(driver.reply(one)->code == 0);
  // They hold the places of the parked requests until then.
  const std::uint64_t parks = driver.ask(taker, wire::Get{"absent"}, 10s);
  CHECK(error_of(driver.reply(parks))->code == ErrorCode::resource_exhausted);
}

TEST_CASE("requests on a connection whose session has ended are answered with the reason") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  driver.apply(core::Goodbye{a});
  CHECK(driver.count<core::Close>() == 1);
  const std::uint64_t late = driver.ask(a, wire::Get{"k"});
  CHECK(error_of(driver.reply(late))->code == ErrorCode::closed);
  driver.apply(core::Heartbeat{a, 1, nullptr});
  driver.apply(core::Heard{a});
  driver.apply(core::Disconnected{a, core::DisconnectCause::closed});
  CHECK(driver.count<core::Close>() == 1);
  CHECK(driver.count<core::SendHeartbeatReply>() == 0);
}

TEST_CASE("whoever speaks before a hello is closed") {
  EngineDriver driver;
  driver.ask(77, wire::Get{"k"});
  REQUIRE(driver.effects.size() == 1);
  CHECK(std::get<core::Close>(driver.effects[0]).reason->code == ErrorCode::protocol_error);
}

TEST_CASE("time that runs backwards stands still") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  driver.ask(a, wire::Set{"k", "v", Duration(1s), false, false});
  driver.now -= 10s;
  CHECK(value_of(*driver.reply(driver.ask(a, wire::Get{"k"}))) == "v");
  driver.now += 10s + 999ms;
  CHECK(value_of(*driver.reply(driver.ask(a, wire::Get{"k"}))) == "v");
  driver.now += 1ms;
  CHECK_FALSE(value_of(*driver.reply(driver.ask(a, wire::Get{"k"}))).has_value());
}

TEST_CASE("a byte costs no work on timers, and the session still ends on time") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  const core::Instant first = driver.engine.next_deadline();
  driver.now += 900ms;
  driver.apply(core::Heard{a});
  CHECK(driver.engine.next_deadline() == first);
  driver.pass(15s - 1ms);
  CHECK(driver.engine.counts().sessions == 1);
  driver.pass(1ms);
  CHECK(driver.engine.counts().sessions == 0);
}

TEST_CASE("after a pause no timer fires until the rim had time to drain its sockets") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  const std::uint64_t get = driver.ask(a, wire::Get{"k"}, 5s);
  const core::ConnectionId b = driver.connect();
  driver.now += 60s;
  driver.apply(core::Late{60s, 60s});
  driver.apply(core::Advance{});
  CHECK(driver.engine.next_deadline() == driver.now + 100ms);
  driver.ask(b, set("k"));  // was sent before the deadline, read after it
  CHECK(value_of(*driver.reply(get)) == "v");
  driver.pass(14s);
  CHECK(driver.engine.counts().sessions == 2);
  driver.pass(1001ms);
  CHECK(driver.engine.counts().sessions == 0);
}

TEST_CASE("a long turn of the server itself is no pause, and no timer fires before what came") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  const std::uint64_t get = driver.ask(a, wire::Get{"k"}, 5s);
  driver.now += 10s;
  driver.apply(core::Late{10s, 200ms});
  CHECK(driver.count<core::Log>() == 0);
  driver.apply(core::Advance{});
  CHECK(driver.engine.next_deadline() == driver.now + 100ms);
  driver.ask(driver.connect(), set("k"));
  CHECK(value_of(*driver.reply(get)) == "v");
  driver.pass(5s - 1ms);
  CHECK(driver.engine.counts().sessions == 2);
  driver.pass(1ms);
  CHECK(driver.engine.counts().sessions == 1);
}

TEST_CASE("a namespace goes with its last key, whatever is on its way to those who were there") {
  core::Options options;
  options.name_spaces.count_max = 2;
  EngineDriver driver(options);
  const core::ConnectionId a = driver.connect("one");
  const std::string value(core::shared_value_bytes_min, 'v');  // shorter ones are not shared
  const std::uint64_t id = driver.ask(a, wire::Set{"k", value, Duration(3s), false, false});
  CHECK(driver.reply(id).has_value());
  auto held = driver.reply(driver.ask(a, wire::Get{"k"}));
  driver.connect("two");
  driver.connect("three");
  CHECK(driver.count<core::Close>() == 1);  // refused: there are two namespaces
  driver.apply(core::Goodbye{a});
  driver.pass(4s);
  driver.connect("three");
  CHECK(driver.count<core::Close>() == 2);  // the goodbye's
  CHECK(value_of(*held) == value);
  CHECK(driver.engine.counts().memory_bytes > value.size());
  held.reset();
  driver.pass(1s);
  CHECK(driver.engine.counts().memory_bytes == 0);
  driver.effects.clear();
}

TEST_CASE("status names every limit and count") {
  EngineDriver driver;
  const core::ConnectionId a = driver.connect();
  const auto reply = driver.reply(driver.ask(a, wire::Status{}));
  const auto status = wire::decode_body<wire::StatusReply>(reply->head).value();
  const auto field = [&](std::string_view name) {
    for (const auto& [key, value] : status.fields) {
      if (key == name) return std::string(value);
    }
    return std::string("missing");
  };
  CHECK(field("sessions_count") == "1");
  CHECK(field("session_timeout_us") == "15000000");
  CHECK(field("memory_bytes_max") == "1073741824");
  CHECK(field("operations_status_count") == "1");
  CHECK(field("incarnation") == "1");
}
