#include "server/door/first_flight.h"

#include <deque>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/await.h"
#include "support/door.h"
#include "support/machine.h"
#include "wire/error_body.h"

// What comes before anybody is known.

namespace {

using muster::ErrorCode;
using muster::Server;
using muster::ServerOptions;
using muster::net::tls::TlsContext;
using muster::server::FirstFlight;
using muster::server::judge_first_flight;
using muster::test::HeardLog;
using muster::test::hello_for;
using muster::test::number_of;
using muster::test::other_key;
using muster::test::RawClient;
using muster::test::start_disturbed_server;
using muster::test::tls_context;
using muster::test::TlsClient;
using muster::test::trainer_key;
namespace wire = muster::wire;

Server start_guarded(ServerOptions options = {}) {
  options.credentials = "team/trainer " + trainer_key + " * all\n";
  return start_disturbed_server(std::move(options));
}

/// Nobody has begun a session, but for one that is asked for this.
std::uint64_t sessions_begun(const HeardLog& log) { return log.has(" begun from ") ? 1 : 0; }

std::string record(const std::string& body) {
  return std::string("\x16\x03\x01", 3) + static_cast<char>(body.size() >> 8) +
         static_cast<char>(body.size() & 255) + body;
}

std::string hello_message(std::size_t bytes) {
  return std::string{1, 0, static_cast<char>(bytes >> 8), static_cast<char>(bytes & 255)} +
         std::string(bytes, 'x');
}

TEST_CASE(
    "a first flight is complete with the last byte of its message, in any number of records") {
  const std::string one = record(hello_message(300));
  for (std::size_t size = 0; size < one.size(); ++size) {
    CHECK(judge_first_flight(one.substr(0, size)) == FirstFlight::incomplete);
  }
  CHECK(judge_first_flight(one) == FirstFlight::complete);
  std::string split;
  for (const char byte : hello_message(40)) split += record(std::string(1, byte));
  for (std::size_t size = 0; size < split.size(); ++size) {
    CHECK(judge_first_flight(split.substr(0, size)) == FirstFlight::incomplete);
  }
  CHECK(judge_first_flight(split) == FirstFlight::complete);
}

TEST_CASE("what never becomes a first flight is seen by its first bytes") {
  CHECK(judge_first_flight("GET / HTTP/1.1") == FirstFlight::wrong);
  CHECK(judge_first_flight(std::string("\x16\x02", 2)) == FirstFlight::wrong);
  CHECK(judge_first_flight(std::string("\x16\x03\x01\x00\x00", 5)) == FirstFlight::wrong);
  CHECK(judge_first_flight(std::string("\x16\x03\x01\x40\x00", 5)) == FirstFlight::wrong);
  CHECK(judge_first_flight(record("\x02")) == FirstFlight::wrong);
  CHECK(judge_first_flight(record(hello_message(600)).substr(0, 10)) == FirstFlight::wrong);
  CHECK(judge_first_flight(record(std::string("\x01\x7f\xff\xff", 4))) == FirstFlight::wrong);
  CHECK(judge_first_flight(record("\x01") + "x") == FirstFlight::wrong);
}

TEST_CASE("the client's first flight has room") {
  const Server server = start_guarded();
  TlsClient client(server.addresses().front(), tls_context(trainer_key, std::string(200, 'n')));
  const std::string flight = client.first_flight();
  MESSAGE("it has ", flight.size(), " bytes");
  CHECK(judge_first_flight(flight) == FirstFlight::complete);
  const std::string label(60, 'n');
  TlsClient by_certificate(
      server.addresses().front(),
      TlsContext::client(label + '.' + label + '.' + label + ".example", {}).value());
  CHECK(judge_first_flight(by_certificate.first_flight()) == FirstFlight::complete);
}

TEST_CASE("a handshake may come byte by byte") {
  const Server server = start_guarded();
  TlsClient client(server.addresses().front(), tls_context(trainer_key));
  for (const char byte : client.first_flight()) client.raw().send(std::string(1, byte));
  REQUIRE(client.shake_hands());
  std::string hello;
  wire::append_client_hello(hello, {});
  for (const char byte : client.encrypted(hello)) client.raw().send(std::string(1, byte));
  const auto answer = wire::decode_server_hello(client.receive(wire::server_hello_bytes));
  REQUIRE(answer.has_value());
  CHECK(answer->status == 0);
}

TEST_CASE("a handshake that is cut at any byte begins no session, and the server serves on") {
  HeardLog log;
  ServerOptions options;
  options.logger = log.logger();
  const Server server = start_guarded(options);
  const std::string& address = server.addresses().front();
  const auto context = tls_context(trainer_key);
  const std::size_t flight_bytes = TlsClient(address, context).first_flight().size();
  for (std::size_t size = 0; size <= flight_bytes; ++size) {
    TlsClient client(address, context);
    client.raw().send(client.first_flight().substr(0, size));
    client.raw().finish_sending();
    CHECK(client.is_closed());
  }
  std::string hello;
  wire::append_client_hello(hello, {});
  for (std::size_t size = 0;; size += 7) {
    TlsClient client(address, context);
    REQUIRE(client.begin());
    const std::string bytes = client.encrypted(hello);
    if (size >= bytes.size()) break;
    client.raw().send(bytes.substr(0, size));
    client.raw().finish_sending();
    CHECK(client.is_closed());
  }
  CHECK(sessions_begun(log) == 0);
  TlsClient last(address, context);
  REQUIRE(last.begin());
  CHECK(last.say_hello().value().status == 0);
}

TEST_CASE("who speaks in clear is told what this is, and others what they speak") {
  const Server server = start_guarded();
  RawClient plain(server.addresses().front());
  const auto hello = plain.say_hello();
  CHECK(hello.status == number_of(ErrorCode::permission_denied));
  CHECK(hello.detail.find("MUSTER_CREDENTIAL_FILE") != hello.detail.npos);
  CHECK(plain.is_closed());
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(1000, '\x16'), std::string(3000, 'x'),
        record(hello_message(600)), std::string("\x16\x03\x01\x00\x00", 5)}) {
    RawClient stranger(server.addresses().front());
    stranger.send(bytes);
    const auto told = wire::decode_server_hello(stranger.receive(wire::server_hello_bytes));
    REQUIRE(told.has_value());
    CHECK(told->status == number_of(ErrorCode::protocol_error));
    CHECK(stranger.is_closed());
  }
}

TEST_CASE("mutated first flights and records are accepted by nobody") {
  HeardLog log;
  ServerOptions options;
  options.logger = log.logger();
  const Server server = start_guarded(options);
  const std::string& address = server.addresses().front();
  const auto context = tls_context(trainer_key);
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    TlsClient client(address, context);
    std::string flight = client.first_flight();
    // Behind the header of the record, whose version says nothing, as of the message.
    const std::size_t index = 11 + random() % (flight.size() - 11);
    flight[index] = static_cast<char>(flight[index] ^ (1 << random() % 8));
    client.raw().send(flight);
    client.raw().finish_sending();
    CHECK(client.is_closed());
  }
  for (int round = 0; round < 100; ++round) {
    TlsClient client(address, context);
    REQUIRE(client.begin());
    std::string hello;
    wire::append_client_hello(hello, {});
    std::string bytes = client.encrypted(hello);
    // The last record: what is before it are the last words of the handshake.
    const std::size_t index = bytes.size() - 1 - random() % 500;
    bytes[index] = static_cast<char>(bytes[index] ^ (1 << random() % 8));
    client.raw().send(bytes);
    CHECK(client.is_closed());
  }
  CHECK(sessions_begun(log) == 0);
}

TEST_CASE("a first flight and a whole conversation that are said again have no effect") {
  HeardLog log;
  ServerOptions options;
  options.logger = log.logger();
  const Server server = start_guarded(options);
  const std::string& address = server.addresses().front();
  TlsClient client(address, tls_context(trainer_key));
  const std::string flight = client.first_flight();
  client.raw().send(flight);
  REQUIRE(client.shake_hands());
  std::string hello;
  wire::append_client_hello(hello, {});
  const std::string rest = client.encrypted(hello);
  RawClient again(address);
  again.send(flight);
  CHECK_FALSE(again.receive_some().empty());
  again.send(rest);
  CHECK(again.is_closed());
  CHECK(sessions_begun(log) == 0);
  client.raw().send(rest);
  CHECK(client.receive(wire::server_hello_bytes).size() == wire::server_hello_bytes);
  CHECK(sessions_begun(log) == 1);
}

TEST_CASE("300 handshakes that nobody ends keep nobody out for long") {
  const Server server = start_guarded();
  const std::string& address = server.addresses().front();
  const auto context = tls_context(trainer_key);
  std::deque<TlsClient> half;
  for (int count = 0; count < 300; ++count) {
    half.emplace_back(address, context, "127.0.0.2");
    half.back().raw().send(half.back().first_flight());
  }
  for (int count = 0; count < 20; ++count) {
    TlsClient client(address, context);
    REQUIRE(client.begin());
    CHECK(client.say_hello().value().status == 0);
  }
}

TEST_CASE("who has gone while he waited at the door is not shaken hands with") {
  HeardLog log;
  ServerOptions options;
  options.logger = log.logger();
  const Server server = start_guarded(std::move(options));
  const auto wrong = tls_context(other_key);
  std::deque<TlsClient> strangers;
  std::deque<std::string> flights;
  for (int count = 0; count < 50; ++count) {
    strangers.emplace_back(server.addresses().front(), wrong, "127.0.0.2");
    flights.push_back(strangers.back().first_flight());
  }
  // The first ones use up what their address may owe; the door is closed to it for a while.
  for (std::size_t each = 0; each < 20; ++each) strangers[each].raw().send(flights[each]);
  for (std::size_t each = 20; each < 50; ++each) strangers[each].raw().send(flights[each]);
  while (strangers.size() > 20) strangers.pop_back();
  for (TlsClient& each : strangers) CHECK(each.is_closed());
  TlsClient last(server.addresses().front(), wrong, "127.0.0.2");
  last.raw().send(last.first_flight());
  CHECK(last.is_closed());  // behind those who have gone
  CHECK(log.count("nobody has the key") >= 20);
  CHECK(log.count("nobody has the key") <= 40);
}

TEST_CASE("failures of one address keep no other one out") {
  const Server server = start_guarded();
  const std::string& address = server.addresses().front();
  const auto wrong = tls_context(other_key);
  std::deque<TlsClient> failing;
  for (int count = 0; count < 500; ++count) {
    failing.emplace_back(address, wrong, "127.0.0.2");
    failing.back().raw().send(failing.back().first_flight());
  }
  TlsClient client(address, tls_context(trainer_key));
  REQUIRE(client.begin());
  CHECK(client.say_hello().value().status == 0);
  for (TlsClient& each : failing) CHECK(each.is_closed());
}

}  // namespace
