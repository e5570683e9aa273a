#include <map>

#include <doctest/doctest.h>

#include "support/raw_client.h"
#include "support/server.h"
#include "wire/error_body.h"
#include "wire/reply.h"

// Frames in every piece and state that a network or a broken client can bring.

namespace {

using namespace std::chrono_literals;
using muster::Error;
using muster::ErrorCode;
using muster::Server;
using muster::ServerOptions;
using muster::test::number_of;
using muster::test::RawClient;
using muster::test::start_disturbed_server;
namespace wire = muster::wire;

RawClient::Frame set(RawClient& client, std::string_view key, std::string_view value) {
  return client.call(wire::Set{key, value, {}, false, false});
}

std::string get(RawClient& client, std::string_view key) {
  const auto reply = client.call(wire::Get{key});
  REQUIRE(reply.header.code == 0);
  const auto body = wire::decode_body<wire::ValueReply>(reply.body);
  REQUIRE(body);
  return std::string(body->value);
}

/// The server's last word before it closes.
Error last_word_of(RawClient& client) {
  const Error why = client.receive_last_word();
  CHECK(client.is_closed());
  return why;
}

TEST_CASE("a request that is cut at each byte is answered when the rest has come") {
  const Server server = start_disturbed_server();
  auto client = RawClient::with_session(server.addresses().front());
  const std::size_t length = client.request(wire::Add{"counter", 1}).size();
  for (std::size_t cut = 1; cut < length; ++cut) {
    const std::string bytes = client.request(wire::Add{"counter", 1});
    client.send(std::string_view(bytes).substr(0, cut));
    client.send(std::string_view(bytes).substr(cut));
    CHECK(client.receive_frame().header.code == 0);
  }
}

TEST_CASE("clients that go within a frame, at each byte, disturb nobody") {
  const Server server = start_disturbed_server();
  auto member = RawClient::with_session(server.addresses().front());
  std::string bytes;
  {
    RawClient any(server.addresses().front());
    bytes = any.request(wire::Set{"key", "cut", {}, false, false});
  }
  set(member, "key", "whole");
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    auto stranger = RawClient::with_session(server.addresses().front());
    stranger.send(std::string_view(bytes).substr(0, cut));
    stranger.finish_sending();
    CHECK(stranger.is_closed());
    CHECK(get(member, "key") == "whole");
  }
}

TEST_CASE("requests may come byte by byte") {
  const Server server = start_disturbed_server();
  auto client = RawClient::with_session(server.addresses().front());
  std::string bytes = client.request(wire::Set{"key", "value", {}, false, false});
  bytes += client.request(wire::Get{"key"});
  for (const char byte : bytes) client.send({&byte, 1});
  CHECK(client.receive_frame().header.id == 1);
  const auto reply = client.receive_frame();
  CHECK(reply.header.id == 2);
  CHECK(reply.body.find("value") != std::string::npos);
}

TEST_CASE("a hundred requests in one segment are answered in one write") {
  const Server server = start_disturbed_server();
  auto client = RawClient::with_session(server.addresses().front());
  std::string bytes;
  for (int number = 0; number < 100; ++number) bytes += client.request(wire::Exists{{"key"}});
  client.send(bytes);
  std::string replies = client.receive_some();
  int count = 0;
  std::string_view rest = replies;
  while (!rest.empty()) {
    const auto frame = wire::cut_frame(rest, UINT32_MAX);
    REQUIRE(frame.has_value());
    REQUIRE(frame->has_value());
    rest.remove_prefix(wire::frame_header_bytes + (*frame)->body.size());
    CHECK((*frame)->header.code == 0);
    ++count;
  }
  CHECK(count == 100);
}

TEST_CASE("a length above the limit ends the connection on its header alone") {
  const Server server = start_disturbed_server();
  auto member = RawClient::with_session(server.addresses().front());
  auto hostile = RawClient::with_session(server.addresses().front());
  std::string header;
  wire::FrameHeader claim;
  claim.body_bytes = UINT32_MAX;
  claim.type = wire::FrameType::request;
  claim.code = static_cast<std::uint16_t>(wire::operation<wire::Set>);
  wire::begin_frame(header, claim);
  hostile.send(header);
  CHECK(last_word_of(hostile).code == ErrorCode::too_large);
  CHECK(set(member, "key", "value").header.code == 0);
}

TEST_CASE("frames that are none, or not a client's, end the connection with a reason") {
  const Server server = start_disturbed_server();
  auto member = RawClient::with_session(server.addresses().front());
  std::vector<std::string> broken;
  for (const auto type : {wire::FrameType::reply, wire::FrameType::event,
                          wire::FrameType::heartbeat_reply, static_cast<wire::FrameType>(99)}) {
    wire::FrameHeader header;
    header.type = type;
    wire::append_frame(broken.emplace_back(), header, {});
  }
  wire::FrameHeader header;
  header.code = static_cast<std::uint16_t>(wire::operation<wire::Set>);
  wire::append_frame(broken.emplace_back(), header, "this is no set request");
  header.type = wire::FrameType::acknowledge;
  wire::append_frame(broken.emplace_back(), header, "\xff\xff\xff\xff");
  for (const std::string& bytes : broken) {
    auto hostile = RawClient::with_session(server.addresses().front());
    hostile.send(bytes);
    CHECK(last_word_of(hostile).code == ErrorCode::protocol_error);
    CHECK(set(member, "key", "value").header.code == 0);
  }
}

TEST_CASE("an operation that the server does not know gets a clean error") {
  const Server server = start_disturbed_server();
  auto client = RawClient::with_session(server.addresses().front());
  std::string bytes = client.request(wire::Get{"key"});
  bytes[6] = '\x39';
  bytes[7] = '\x30';
  client.send(bytes);
  const auto reply = client.receive_frame();
  CHECK(reply.header.type == wire::FrameType::reply);
  CHECK(reply.header.id == 1);
  CHECK(reply.header.code == number_of(ErrorCode::unsupported));
  CHECK(set(client, "key", "value").header.code == 0);
}

TEST_CASE("a large value arrives whole at everybody who waits for it") {
  const Server server = start_disturbed_server();
  auto writer = RawClient::with_session(server.addresses().front());
  std::vector<RawClient> readers;
  for (int count = 0; count < 4; ++count) {
    readers.push_back(RawClient::with_session(server.addresses().front()));
    readers.back().send(readers.back().request(wire::Get{"large"}));
  }
  std::string value(16U << 20, 'x');
  for (std::size_t at = 0; at < value.size(); at += 4096) value[at] = static_cast<char>(at >> 12);
  CHECK(set(writer, "large", value).header.code == 0);
  for (RawClient& reader : readers) {
    const auto reply = reader.receive_frame();
    const auto body = wire::decode_body<wire::ValueReply>(reply.body);
    REQUIRE(body);
    CHECK(body->value == value);
  }
}

TEST_CASE("a value for which there is no memory is refused, and the connection stays in step") {
  ServerOptions options;
  options.memory_bytes_max = 2U << 20;
  const Server server = start_disturbed_server(options);
  auto client = RawClient::with_session(server.addresses().front());
  const std::string value(4U << 20, 'x');
  const auto reply = set(client, "large", value);
  CHECK(reply.header.code == number_of(ErrorCode::resource_exhausted));
  const auto error = wire::decode_error(reply.header.code, reply.body);
  REQUIRE(error);
  CHECK(error->limit == options.memory_bytes_max);
  CHECK(set(client, "small", "fits").header.code == 0);
  CHECK(get(client, "small") == "fits");
}

TEST_CASE("partial frames of many clients take only what they have sent") {
  ServerOptions options;
  options.memory_bytes_max = 1U << 20;
  const Server server = start_disturbed_server(options);
  auto member = RawClient::with_session(server.addresses().front());
  std::vector<RawClient> hostile;
  for (int count = 0; count < 50; ++count) {
    hostile.push_back(RawClient::with_session(server.addresses().front()));
    const std::string value(1U << 20, 'x');
    const std::string bytes = hostile.back().request(wire::Set{"key", value, {}, false, false});
    hostile.back().send(std::string_view(bytes).substr(0, 100));
  }
  CHECK(set(member, "key", std::string(100'000, 'y')).header.code == 0);
}

TEST_CASE("heartbeats are answered with their number") {
  const Server server = start_disturbed_server();
  auto client = RawClient::with_session(server.addresses().front());
  std::string bytes;
  wire::append_ids(bytes, wire::FrameType::heartbeat, 4711, {});
  client.send(bytes);
  const auto frame = client.receive_frame();
  CHECK(frame.header.type == wire::FrameType::heartbeat_reply);
  CHECK(frame.header.id == 4711);
}

}  // namespace
