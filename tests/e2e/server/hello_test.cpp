#include <algorithm>
#include <mutex>
#include <string>

#include <doctest/doctest.h>

#include "support/raw_client.h"
#include "support/server.h"

// Newcomers of every kind, and that nobody else notices them.

namespace {

using namespace std::chrono_literals;
using muster::ErrorCode;
using muster::Server;
using muster::ServerOptions;
using muster::test::number_of;
using muster::test::RawClient;
using muster::test::start_disturbed_server;
namespace wire = muster::wire;

void check_serves(RawClient& client) {
  CHECK(client.call(wire::Set{"key", "value", {}, false, false}).header.code == 0);
  const auto reply = client.call(wire::Get{"key"});
  CHECK(reply.header.code == 0);
  CHECK(reply.body.find("value") != std::string::npos);
}

TEST_CASE("a hello is answered with the incarnation, the limits and the hosting process") {
  ServerOptions options;
  options.hosting_rank = 0;
  options.value_bytes_max = 12345;
  const Server server = start_disturbed_server(options);
  RawClient client(server.addresses().front());
  const wire::ServerHello hello = client.say_hello();
  CHECK(hello.status == 0);
  CHECK(hello.incarnation == server.incarnation());
  CHECK(hello.session_id != 0);
  CHECK(hello.limits.value_bytes_max == 12345);
  CHECK(hello.hosting_process.id != muster::ProcessId{});
  CHECK(hello.hosting_rank == 0);
  check_serves(client);
}

TEST_CASE("who speaks something else is refused with a reason, and nobody notices") {
  const Server server = start_disturbed_server();
  auto member = RawClient::with_session(server.addresses().front());
  const std::string zeros(600, '\0');
  const std::string noise = "\x8dMSTX" + std::string(600, '\xff');
  for (const std::string& greeting :
       {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), std::string("\x16\x03\x01\x02\x00", 5),
        std::string("SSH-2.0-OpenSSH\r\n"), zeros, noise}) {
    RawClient stranger(server.addresses().front());
    stranger.send(greeting);
    const wire::ServerHello answer = stranger.receive_hello();
    CHECK(answer.status == number_of(ErrorCode::protocol_error));
    CHECK_FALSE(answer.detail.empty());
    CHECK(stranger.is_closed());
    check_serves(member);
  }
}

TEST_CASE("no name that a client gives reaches a log as anything but text on one line") {
  const std::string forged = "x\n2026-01-31T12:00:00.123Z error   \x1b[2J\u009b2J\u202e\u2028\xff";
  std::mutex mutex;
  std::string log;
  std::size_t lines_count = 0;
  {
    ServerOptions options;
    options.logger = [&](muster::LogLevel, std::string_view line) {
      const std::lock_guard lock(mutex);
      log.append(line).append("\n");
      ++lines_count;
    };
    const Server server = start_disturbed_server(options);
    RawClient client(server.addresses().front());
    wire::ClientHello hello;
    hello.process.id.bytes[0] = 1;
    hello.process.host = forged;
    hello.process.label = forged;
    CHECK(client.say_hello(hello).status == 0);
    RawClient other(server.addresses().front());
    wire::ClientHello of_supervisor;
    of_supervisor.role = wire::Role::supervisor;
    CHECK(other.say_hello(of_supervisor).status == 0);
    CHECK(other.call(wire::ReportDead{hello.process.id, forged}).header.code == 0);
    CHECK(client.is_closed());
  }
  CAPTURE(log);
  CHECK(log.find("begun from") != std::string::npos);
  CHECK(log.find("declared dead") != std::string::npos);
  CHECK(static_cast<std::size_t>(std::count(log.begin(), log.end(), '\n')) == lines_count);
  for (const char* const obeyed : {"\x1b", "\u009b", "\u202e", "\u2028", "\xff"}) {
    CHECK(log.find(obeyed) == std::string::npos);
  }
}

TEST_CASE("a client of another version is told which one is spoken") {
  const Server server = start_disturbed_server();
  RawClient client(server.addresses().front());
  wire::ClientHello hello;
  hello.version_min = hello.version_max = 999;
  const wire::ServerHello answer = client.say_hello(hello);
  CHECK(answer.status == number_of(ErrorCode::unsupported));
  CHECK(answer.version == wire::protocol_version);
  CHECK(client.is_closed());
}

TEST_CASE("a hello may come byte by byte") {
  const Server server = start_disturbed_server();
  RawClient client(server.addresses().front());
  std::string bytes;
  wire::append_client_hello(bytes, {});
  for (const char byte : bytes) client.send({&byte, 1});
  CHECK(client.receive_hello().status == 0);
  check_serves(client);
}

TEST_CASE("a request right behind the hello is not executed") {
  const Server server = start_disturbed_server();
  auto member = RawClient::with_session(server.addresses().front());
  RawClient blind(server.addresses().front());
  std::string bytes;
  wire::append_client_hello(bytes, {});
  bytes += blind.request(wire::Set{"key", "written blindly", {}, false, false});
  blind.send(bytes);
  const auto hello = wire::decode_server_hello(blind.receive(wire::server_hello_bytes));
  REQUIRE(hello.has_value());
  CHECK(hello->status == 0);
  CHECK(blind.receive_last_word().code == ErrorCode::protocol_error);
  CHECK(blind.is_closed());
  const auto reply = member.call(wire::Get{"key"}, 0s);
  CHECK(reply.header.code == number_of(ErrorCode::not_found));
}

TEST_CASE("a hello cut at each byte disturbs nobody") {
  const Server server = start_disturbed_server();
  auto member = RawClient::with_session(server.addresses().front());
  std::string bytes;
  wire::append_client_hello(bytes, {});
  for (std::size_t count = 0; count < bytes.size(); ++count) {
    RawClient stranger(server.addresses().front());
    stranger.send(std::string_view(bytes).substr(0, count));
  }
  check_serves(member);
}

TEST_CASE("a hello that stalls is refused after 10 s") {
  const Server server = start_disturbed_server();
  RawClient silent(server.addresses().front());
  RawClient truncated(server.addresses().front());
  std::string bytes;
  wire::append_client_hello(bytes, {});
  truncated.send(std::string_view(bytes).substr(0, 511));
  const auto began = std::chrono::steady_clock::now();
  for (RawClient* client : {&silent, &truncated}) {
    CHECK(client->receive_hello().status == number_of(ErrorCode::timed_out));
    CHECK(client->is_closed());
  }
  const auto took = std::chrono::steady_clock::now() - began;
  CHECK(took > 9500ms);
  CHECK(took < 25s);
}

TEST_CASE("a server that is full says so, and goes on when somebody has left") {
  ServerOptions options;
  options.connections_max = 2;
  const Server server = start_disturbed_server(options);
  auto first = RawClient::with_session(server.addresses().front());
  auto second = RawClient::with_session(server.addresses().front());
  {
    RawClient third(server.addresses().front());
    CHECK(third.say_hello().status == number_of(ErrorCode::busy));
    CHECK(third.is_closed());
  }
  std::string goodbye;
  wire::append_goodbye(goodbye, "bye");
  second.send(goodbye);
  CHECK(second.is_closed());
  auto fourth = RawClient::with_session(server.addresses().front());
  check_serves(fourth);
  check_serves(first);
}

TEST_CASE("a storm of newcomers is served") {
  const Server server = start_disturbed_server();
  std::vector<RawClient> clients;
  std::string hello;
  wire::append_client_hello(hello, {});
  for (int count = 0; count < 500; ++count) {
    clients.emplace_back(server.addresses().front());
    clients.back().send(hello);
  }
  for (RawClient& client : clients) REQUIRE(client.receive_hello().status == 0);
}

TEST_CASE("a session is resumed on a new connection") {
  const Server server = start_disturbed_server();
  RawClient client(server.addresses().front());
  const wire::ServerHello welcome = client.say_hello();
  wire::ClientHello again;
  again.incarnation = welcome.incarnation;
  again.session_id = welcome.session_id;
  again.token = welcome.token;
  RawClient newer(server.addresses().front());
  const wire::ServerHello answer = newer.say_hello(again);
  CHECK(answer.status == 0);
  CHECK(answer.resumed);
  CHECK(answer.session_id == welcome.session_id);
  CHECK(client.is_closed());
  check_serves(newer);
}

}  // namespace
