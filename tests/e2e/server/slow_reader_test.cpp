#include <atomic>
#include <cstring>
#include <future>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "support/await.h"
#include "support/raw_client.h"
#include "support/server.h"
#include "wire/reply.h"

// Peers that do not take their replies: they are let go, or held back, and others are served.

namespace {

using namespace std::chrono_literals;
using muster::LogLevel;
using muster::Server;
using muster::ServerOptions;
using muster::test::await;
using muster::test::RawClient;
using muster::test::start_disturbed_server;
namespace wire = muster::wire;

constexpr int small_buffer_bytes = 16 * 1024;
constexpr std::size_t value_bytes = 1U << 20;

/// Its clients send no heartbeats, and a sanitizer's run may take long.
Server start_patient_server(ServerOptions options = {}) {
  options.session_timeout = 120s;
  return start_disturbed_server(std::move(options));
}

void set_large(RawClient& client) {
  const std::string value(value_bytes, 'x');
  CHECK(client.call(wire::Set{"large", value, {}, false, false}).header.code == 0);
}

/// Who was closed because more than 8 MiB wait for it.
class OverfullCount {
 public:
  ServerOptions options() {
    ServerOptions options;
    options.logger = [this](LogLevel, std::string_view line) {
      if (line.find("more than 8 MiB wait") != std::string_view::npos) ++count_;
    };
    return options;
  }
  int count() const { return count_; }

 private:
  std::atomic<int> count_{0};
};

TEST_CASE("more than 8 MiB behind the reply that is being sent ends the connection") {
  OverfullCount overfull;
  const Server server = start_patient_server(overfull.options());
  auto member = RawClient::with_session(server.addresses().front());
  auto slow = RawClient::with_session(server.addresses().front(), small_buffer_bytes);
  std::string waits;
  for (int count = 0; count < 40; ++count) waits += slow.request(wire::Get{"large"});
  slow.send(waits);
  CHECK(slow.call(wire::Exists{{"large"}}).header.code == 0);  // all of them wait by now
  set_large(member);                                           // 40 MiB are due at once
  await([&] { return overfull.count() == 1; });                // it takes nothing meanwhile
  CHECK(slow.is_closed());
  CHECK(member.call(wire::Add{"counter", 1}).header.code == 0);
}

TEST_CASE("heartbeats excuse nobody who does not take what waits") {
  OverfullCount overfull;
  const Server server = start_patient_server(overfull.options());
  auto member = RawClient::with_session(server.addresses().front());
  set_large(member);
  std::string heartbeat;
  wire::append_ids(heartbeat, wire::FrameType::heartbeat, 7, {});
  for (int round = 0; round < 10; ++round) {
    const std::string key = "round-" + std::to_string(round);
    auto slow = RawClient::with_session(server.addresses().front());
    for (int count = 0; count < 8; ++count) {  // its socket learns to take several parts at once
      CHECK(slow.call(wire::Get{"large"}).header.code == 0);
    }
    std::string waits;  // for more than its socket takes by itself, which is up to 36 MiB
    for (int count = 0; count < 80; ++count) waits += slow.request(wire::Get{key});
    slow.send(waits);
    CHECK(slow.call(wire::Exists{{key}}).header.code == 0);
    std::atomic<bool> is_over{false};
    const auto beating = std::async(std::launch::async, [&] {
      for (int count = 0; count < 1000 && !is_over; ++count) slow.send(heartbeat);
    });
    const std::string value(value_bytes, 'x');
    CHECK(member.call(wire::Set{key, value, {}, false, false}).header.code == 0);
    is_over = true;
    beating.wait();
    await([&] { return overfull.count() == round + 1; });  // it takes nothing meanwhile
    CHECK(slow.is_closed());
  }
}

TEST_CASE("many are served by the same event by which one is let go that does not read") {
  OverfullCount overfull;
  const Server server = start_patient_server(overfull.options());
  const std::string address = server.addresses().front();
  auto member = RawClient::with_session(address);
  auto slow = RawClient::with_session(address, small_buffer_bytes);
  std::string waits;
  for (int count = 0; count < 40; ++count) waits += slow.request(wire::Get{"large"});
  slow.send(waits);
  CHECK(slow.call(wire::Exists{{"large"}}).header.code == 0);
  std::vector<RawClient> others;
  for (int count = 0; count < 100; ++count) {
    others.push_back(RawClient::with_session(address));
    others.back().send(others.back().request(wire::Get{"large"}));
    CHECK(others.back().call(wire::Exists{{"large"}}).header.code == 0);
  }
  set_large(member);
  for (RawClient& other : others) {
    const auto reply = other.receive_frame();
    const auto value = wire::decode_body<wire::ValueReply>(reply.body);
    REQUIRE(value);
    CHECK(value->value == std::string(value_bytes, 'x'));
  }
  await([&] { return overfull.count() == 1; });  // it takes nothing meanwhile
  CHECK(slow.is_closed());
}

TEST_CASE("a client that asks for much and reads it, slowly, gets all of it") {
  const Server server = start_patient_server();
  auto client = RawClient::with_session(server.addresses().front(), small_buffer_bytes);
  auto member = RawClient::with_session(server.addresses().front());
  set_large(member);
  constexpr int count = 64;
  std::string requests;
  for (int number = 0; number < count; ++number) requests += client.request(wire::Get{"large"});
  client.send(requests);
  for (int number = 0; number < count; ++number) {
    const auto reply = client.receive_frame();
    CHECK(reply.header.code == 0);
    CHECK(reply.body.size() > value_bytes);
    if (number % 16 == 0) CHECK(member.call(wire::Add{"counter", 1}).header.code == 0);
  }
}

TEST_CASE("one large reply that is read slowly holds up no other request") {
  ServerOptions options;
  options.value_bytes_max = 32U << 20;
  const Server server = start_patient_server(options);
  const std::string address = server.addresses().front();
  auto client = RawClient::with_session(address, small_buffer_bytes);
  auto member = RawClient::with_session(address);
  const std::string value(32U << 20, 'x');
  CHECK(member.call(wire::Set{"huge", value, {}, false, false}).header.code == 0);
  client.send(client.request(wire::Get{"huge"}));
  client.receive(100);  // it has begun to come
  client.send(client.request(wire::Set{"arrived", "", {}, false, false}));
  CHECK(member.call(wire::Get{"arrived"}).header.code == 0);  // while nobody takes the rest
}

TEST_CASE("a heartbeat is answered while a long reply is being taken") {
  ServerOptions options;
  options.value_bytes_max = 64U << 20;
  const Server server = start_patient_server(options);
  const std::string address = server.addresses().front();
  auto client = RawClient::with_session(address, small_buffer_bytes);
  std::string value(64U << 20, 'x');
  for (std::size_t at = 0; at < value.size(); at += 1000) value[at] = static_cast<char>(at / 1000);
  CHECK(client.call(wire::Set{"huge", value, {}, false, false}).header.code == 0);
  client.send(client.request(wire::Get{"huge"}));
  std::string begun = client.receive(wire::frame_header_bytes);  // it has begun to come
  const auto first = wire::cut_frame(begun, UINT32_MAX);
  REQUIRE(first.has_value());
  CHECK_FALSE(*first);  // its header alone
  CHECK(begun[4] == static_cast<char>(wire::FrameType::part));
  std::uint32_t part_bytes = 0;
  std::memcpy(&part_bytes, begun.data(), sizeof(part_bytes));
  std::string got = client.receive(part_bytes);
  std::string heartbeat;
  wire::append_ids(heartbeat, wire::FrameType::heartbeat, 7, {});
  client.send(heartbeat);
  RawClient::Frame frame = client.receive_frame();
  CHECK(frame.header.type == wire::FrameType::heartbeat_reply);
  CHECK(frame.header.id == 7);
  frame = client.receive_frame();
  CHECK(frame.header.type == wire::FrameType::reply);
  got += frame.body;
  const auto reply = wire::decode_body<wire::ValueReply>(got);
  REQUIRE(reply);
  CHECK(reply->value == value);
}

TEST_CASE("a client that is held back is heard, and its requests are done in order") {
  const Server server = start_patient_server();
  auto client = RawClient::with_session(server.addresses().front(), small_buffer_bytes);
  auto member = RawClient::with_session(server.addresses().front());
  set_large(member);
  std::string requests;
  for (int number = 0; number < 8; ++number) {
    requests += client.request(wire::Get{"large"});
    requests += client.request(wire::Append{"order", std::to_string(number)});
  }
  const std::string filler(8192, 'f');  // more than is stored for a client that is held
  for (int number = 0; number < 40; ++number) {
    requests += client.request(wire::Set{"filler", filler, {}, false, false});
  }
  client.send(requests);
  std::set<std::uint64_t> answered;  // short replies may overtake long ones
  for (int count = 0; count < 56; ++count) answered.insert(client.receive_frame().header.id);
  CHECK(answered.size() == 56);
  const auto reply = client.call(wire::Get{"order"});
  const auto body = wire::decode_body<wire::ValueReply>(reply.body);
  REQUIRE(body);
  CHECK(body->value == "01234567");
}

TEST_CASE("a client that takes nothing for 10 s is let go, and the log says so") {
  std::promise<void> warned;
  std::atomic<bool> is_armed{false};
  ServerOptions options;
  options.logger = [&](LogLevel level, std::string_view) {
    if (level == LogLevel::warning && is_armed.exchange(false)) warned.set_value();
  };
  auto started = Server::start(options);
  REQUIRE(started);
  const std::string address = started->addresses().front();
  auto member = RawClient::with_session(address);
  set_large(member);
  auto slow = RawClient::with_session(address, small_buffer_bytes);
  std::string requests;
  for (int count = 0; count < 12; ++count) requests += slow.request(wire::Get{"large"});
  is_armed = true;
  const auto began = std::chrono::steady_clock::now();
  slow.send(requests);
  REQUIRE(warned.get_future().wait_for(25s) == std::future_status::ready);
  CHECK(std::chrono::steady_clock::now() - began > 9s);
  CHECK(slow.is_closed());
  CHECK(member.call(wire::Add{"counter", 1}).header.code == 0);
}

}  // namespace
