#include <signal.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "e2e/server/musterd.h"
#include "support/await.h"
#include "support/raw_client.h"
#include "wire/reply.h"
#include "wire/settings.h"

// musterd while it runs: its settings change by requests and by its file, and it ends when it is
// drained.

namespace {

using muster::ErrorCode;
using muster::test::await;
using muster::test::Musterd;
using muster::test::RawClient;
using muster::test::TemporaryFolder;
namespace wire = muster::wire;
using namespace std::chrono_literals;

RawClient supervisor_of(const Musterd& musterd) {
  RawClient client(musterd.address());
  wire::ClientHello hello;
  hello.role = wire::Role::supervisor;
  REQUIRE(client.say_hello(hello).status == 0);
  return client;
}

std::uint64_t value_of_setting(RawClient& client, std::string_view name) {
  const auto reply = client.call(wire::GetSettings{name});
  REQUIRE(reply.header.code == 0);
  const auto told = wire::decode_body<wire::SettingsReply>(reply.body);
  REQUIRE(told.has_value());
  REQUIRE(told->settings.size() == 1);
  return told->settings.front().value;
}

void write_settings(const std::string& path, const std::string& text) {
  std::ofstream(path + ".new") << text;
  REQUIRE(std::rename((path + ".new").c_str(), path.c_str()) == 0);
}

std::string log_of(Musterd& musterd) {
  musterd.send_signal(SIGTERM);
  const std::string log = musterd.read_errors();
  CHECK(musterd.wait().exit_code == 0);
  return log;
}

TEST_CASE(
    "a hang-up reads the file of settings again: what can change does, and a mistake nothing") {
  const TemporaryFolder folder;
  const std::string path = folder / "settings";
  write_settings(path, "parked-waits-max = 10\nlog-format = text\ngrace = 1s\n");
  Musterd musterd({"--config", path, "--memory-bytes-max", "64MiB"});
  auto client = supervisor_of(musterd);
  CHECK(value_of_setting(client, "parked-waits-max") == 10);

  const std::string changed = "parked-waits-max = 20\ngrace = 2s\nlog-format = json\n";
  write_settings(path, changed + "groups-per-namespace-max = 7\n");
  musterd.send_signal(SIGHUP);
  await([&] { return value_of_setting(client, "groups-per-namespace-max") == 7; });
  CHECK(value_of_setting(client, "parked-waits-max") == 20);
  CHECK(value_of_setting(client, "grace") == 1'000'000);

  // What the file gives wins over what was set meanwhile, and what a flag gives over the file.
  REQUIRE(client.call(wire::SetSetting{"parked-waits-max", 30}).header.code == 0);
  REQUIRE(client.call(wire::SetSetting{"namespaces-per-address-max", 5}).header.code == 0);
  write_settings(path, changed + "memory-bytes-max = 32MiB\n");
  musterd.send_signal(SIGHUP);
  await([&] { return value_of_setting(client, "parked-waits-max") == 20; });
  CHECK(value_of_setting(client, "groups-per-namespace-max") == 4096);
  CHECK(value_of_setting(client, "namespaces-per-address-max") == 5);
  CHECK(value_of_setting(client, "memory-bytes-max") == 64U << 20);

  write_settings(path, "parked-waits-max = 40\ngroups-per-namespace-max = many\n");
  musterd.send_signal(SIGHUP);
  write_settings(path, "parked-waits-max = 0\n");
  musterd.send_signal(SIGHUP);
  CHECK(client.call(wire::Get{"k"}, 0s).header.code == static_cast<int>(ErrorCode::not_found));
  CHECK(value_of_setting(client, "parked-waits-max") == 20);
  const std::string log = log_of(musterd);
  CHECK(log.find("setting parked-waits-max was changed from 10 to 20 by the file " + path +
                 ", read again (SIGHUP)") != std::string::npos);
  CHECK(log.find("grace changes with a restart only") != std::string::npos);
  CHECK(log.find("hang-up signal: log-format changes with a restart only") != std::string::npos);
  CHECK(log.find("the settings stay as they were: ") != std::string::npos);
}

TEST_CASE("the level of the log changes at once, also from silence") {
  Musterd musterd({"--log-level", "silent"});
  auto operating = supervisor_of(musterd);
  { const auto client = RawClient::with_session(musterd.address()); }
  REQUIRE(operating.call(wire::SetSetting{"log-level", 1}).header.code == 0);
  { const auto client = RawClient::with_session(musterd.address()); }
  REQUIRE(operating.call(wire::SetSetting{"log-level", wire::silent_level}).header.code == 0);
  const std::string log = log_of(musterd);
  CHECK(log.find("session 2 ") == std::string::npos);
  CHECK(log.find("session 3 ") != std::string::npos);
  CHECK(log.find("stopping: ") == std::string::npos);
}

TEST_CASE("in JSON a round that waits is told with its group, epoch and number") {
  Musterd musterd({"--log-format", "json", "--slow-round-log", "100ms"});
  auto first = RawClient::with_session(musterd.address());
  auto second = RawClient::with_session(musterd.address());
  first.send(first.request(wire::Join{"tp \"0", 0, 2, {}, false, {}}));
  CHECK(second.call(wire::Join{"tp \"0", 1, 2, {}, false, {}}).header.code == 0);
  CHECK(first.receive_frame().header.code == 0);
  wire::CollectiveCall barrier;
  barrier.epoch = barrier.round = 1;
  // Its time-out comes behind the line.
  CHECK(first.call(barrier, 400ms).header.code == static_cast<int>(ErrorCode::timed_out));
  std::istringstream lines(log_of(musterd));
  int told = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    if (!object.contains("round")) continue;
    ++told;
    CHECK(object.at("level") == "warning");
    CHECK(object.at("group") == "tp \"0");
    CHECK(object.at("epoch") == 1);
    CHECK(object.at("round") == 1);
  }
  CHECK(told > 0);
}

TEST_CASE("a musterd that is drained refuses newcomers, and ends when the last client has gone") {
  Musterd musterd({});
  auto client = RawClient::with_session(musterd.address());
  {
    auto operating = supervisor_of(musterd);
    const auto reply = operating.call(wire::Drain{false, std::nullopt, "a newer version"});
    REQUIRE(reply.header.code == 0);
    CHECK(wire::decode_body<wire::NumberReply>(reply.body)->number == 1);
    std::string goodbye;
    wire::append_goodbye(goodbye, "bye");
    operating.send(goodbye);
    CHECK(operating.is_closed());
  }
  {
    RawClient newcomer(musterd.address());
    const wire::ServerHello hello = newcomer.say_hello();
    CHECK(hello.status == static_cast<int>(ErrorCode::unavailable));
    CHECK(hello.detail.find("a newer version") != std::string::npos);
  }
  CHECK(client.call(wire::Add{"counter", 1}).header.code == 0);
  std::string goodbye;
  wire::append_goodbye(goodbye, "bye");
  client.send(goodbye);
  CHECK(musterd.wait().exit_code == 0);
}

TEST_CASE("the time of a drain ends musterd, and those who are left are told why") {
  Musterd musterd({});
  auto client = RawClient::with_session(musterd.address());
  auto operating = supervisor_of(musterd);
  REQUIRE(operating.call(wire::Drain{false, 100ms, "a newer version"}).header.code == 0);
  CHECK(client.receive_goodbye().find("a newer version") != std::string::npos);
  CHECK(musterd.wait().exit_code == 0);
}

}  // namespace
