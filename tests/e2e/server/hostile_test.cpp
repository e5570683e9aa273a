#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/half_hellos.h"
#include "support/raw_client.h"
#include "support/server.h"
#include "wire/reply.h"

// Clients that do what they can to be in the way of others.

namespace {

using muster::LogLevel;
using muster::Server;
using muster::ServerOptions;
using muster::test::HalfHellos;
using muster::test::RawClient;
using muster::test::start_disturbed_server;
namespace wire = muster::wire;

/// The lines of a server's log.
class Lines {
 public:
  muster::Logger logger() {
    return [this](LogLevel level, std::string_view line) {
      const std::lock_guard lock(mutex_);
      all_.emplace_back(level, line);
    };
  }
  std::ptrdiff_t count(LogLevel lowest, std::string_view part) {
    const std::lock_guard lock(mutex_);
    return std::count_if(all_.begin(), all_.end(), [&](const auto& line) {
      return line.first >= lowest && line.second.find(part) != std::string::npos;
    });
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<LogLevel, std::string>> all_;
};

TEST_CASE("sessions that begin and end in a loop leave few lines in the log, and a count") {
  Lines lines;
  ServerOptions options;
  options.logger = lines.logger();
  Server server = start_disturbed_server(options);
  for (int count = 0; count < 600; ++count) {
    auto client = RawClient::with_session(server.addresses().front());
    std::string goodbye;
    wire::append_goodbye(goodbye, "bye");
    client.send(goodbye);
    CHECK(client.is_closed());
  }
  server.stop("it is over");
  CHECK(lines.count(LogLevel::info, "") < 600);
  CHECK(lines.count(LogLevel::info, "127.0.0.1: ") > 0);
  CHECK(lines.count(LogLevel::info, " more lines were left out") > 0);
}

/// A number that the server tells of itself.
std::uint64_t figure(RawClient& observer, const std::string& name) {
  const RawClient::Frame reply = observer.call(wire::Status{});
  const auto status = wire::decode_body<wire::StatusReply>(reply.body);
  REQUIRE(status);
  for (const auto& [key, value] : status->fields) {
    if (key == name) return std::stoull(std::string(value));
  }
  return 0;
}

TEST_CASE("beside 2,000 half hellos of one address others are served, and a session resumes") {
  const Server server = start_disturbed_server();
  auto member = RawClient::with_session(server.addresses().front());
  RawClient lost(server.addresses().front());
  const wire::ServerHello welcome = lost.say_hello();
  HalfHellos half("127.0.0.2", server.port(), 2000);
  half.open(2000, 511);
  for (int count = 0; count < 50; ++count) RawClient::with_session(server.addresses().front());
  wire::ClientHello again;
  again.incarnation = welcome.incarnation;
  again.session_id = welcome.session_id;
  again.token = welcome.token;
  CHECK(RawClient(server.addresses().front()).say_hello(again).resumed);
  CHECK(figure(member, "connections_accepted_count") == 2053);
}

TEST_CASE("too many half hellos of one address make room for each other, and not for others") {
  ServerOptions options;
  options.connections_max = 10;
  options.hello_connections_max = 90;
  const Server server = start_disturbed_server(options);
  RawClient patient(server.addresses().front());
  HalfHellos half("127.0.0.2", server.port(), 400);
  half.open(400, 100);
  auto member = RawClient::with_session(server.addresses().front());
  const std::uint64_t places = connections_at_most(options);
  CHECK(figure(member, "newcomers_count") == places - 1);  // with the patient one
  CHECK(half.answered_count() == 402 - places);
  CHECK(patient.say_hello().status == 0);
}

}  // namespace
