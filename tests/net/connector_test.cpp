#include "net/connector.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include <doctest/doctest.h>

#include "net/listening.h"
#include "net/test_loop.h"

namespace {

using namespace std::chrono_literals;
using muster::net::Address;
using muster::net::ConnectError;
using muster::net::ConnectFailure;
using muster::net::Connection;
using muster::net::Connector;
using muster::net::Listening;
using muster::net::parse_address;
using muster::test::TestLoop;
using Outcome = Connector::Outcome;

std::vector<Listening> listen_at(const std::string& address, int backlog = 16) {
  auto listenings = muster::net::listen_at({address}, {backlog, false});
  REQUIRE(listenings);
  return std::move(*listenings);
}

std::string address_of(const Listening& listening) { return to_string(listening.address()); }

struct Attempt {
  Attempt(TestLoop& its_loop, const std::string& address, Connector::Options options = {})
      : loop(its_loop),
        connector(Connector::create(loop.loop(), *parse_address(address), options)) {}

  Outcome connect() {
    std::optional<Outcome> outcome;
    connector->connect([&](Outcome result) { outcome = std::move(result); });
    CHECK_FALSE(outcome);  // never from within the call
    loop.run_until([&] { return outcome.has_value(); });
    return std::move(*outcome);
  }

  std::string connected_to() {
    const Outcome outcome = connect();
    const auto* const connection = std::get_if<std::shared_ptr<Connection>>(&outcome);
    REQUIRE(connection);
    return (*connection)->peer();
  }

  ConnectError failure() {
    const Outcome outcome = connect();
    const auto* const error = std::get_if<ConnectError>(&outcome);
    REQUIRE(error);
    return *error;
  }

  TestLoop& loop;
  std::shared_ptr<Connector> connector;
};

TEST_CASE("a server is found by number, by name and by path") {
  TestLoop loop;
  const auto folder =
      std::filesystem::temp_directory_path() / ("muster-connector-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const std::string path = "unix:" + (folder / "socket").string();
  {
    const auto by_path = listen_at(path);
    CHECK(Attempt(loop, path).connected_to() == path);
    const auto by_number = listen_at("127.0.0.1:0");
    const std::string address = address_of(by_number[0]);
    CHECK(Attempt(loop, address).connected_to() == address);
    const std::string port = std::to_string(by_number[0].address().port());
    CHECK(Attempt(loop, "localhost:" + port).connected_to() == address);
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("a port where nobody listens refuses, and the address is named") {
  TestLoop loop;
  std::string address;
  {
    const auto closed = listen_at("127.0.0.1:0");
    address = address_of(closed[0]);
  }
  const ConnectError error = Attempt(loop, address).failure();
  CHECK(error.kind == ConnectFailure::refused);
  CHECK(error.detail.find(address) != std::string::npos);
  CHECK(Attempt(loop, "unix:/nowhere/at/all").failure().kind == ConnectFailure::refused);
}

TEST_CASE("a host name without an address is not resolved") {
  TestLoop loop;
  CHECK(Attempt(loop, "no-such-host.invalid:1").failure().kind == ConnectFailure::not_resolved);
}

TEST_CASE("an address that does not answer is silent, within the attempt's time") {
  TestLoop loop;
  const auto full = listen_at("127.0.0.1:0", 0);  // takes one that is not accepted, no more
  Connector::Options options;
  options.attempt_timeout = 400ms;
  std::vector<Outcome> taken;
  std::optional<ConnectError> silent;
  for (int count = 0; count < 8 && !silent; ++count) {
    taken.push_back(Attempt(loop, address_of(full[0]), options).connect());
    if (const auto* error = std::get_if<ConnectError>(&taken.back())) silent = *error;
  }
  REQUIRE(silent);
  CHECK(silent->kind == ConnectFailure::silent);
}

TEST_CASE("a lost first try is repeated before the kernel would") {
  TestLoop loop;
  auto full = listen_at("127.0.0.1:0", 0);
  std::vector<Outcome> taken;
  Connector::Options brief;
  brief.attempt_timeout = 50ms;
  while (taken.empty() || !std::holds_alternative<ConnectError>(taken.back())) {
    taken.push_back(Attempt(loop, address_of(full[0]), brief).connect());
  }
  Attempt attempt(loop, address_of(full[0]));
  std::optional<Outcome> outcome;
  const auto began = std::chrono::steady_clock::now();
  attempt.connector->connect([&](Outcome result) { outcome = std::move(result); });
  muster::net::Timer relief(loop.loop());
  relief.set_after(100ms, [&] {  // the backlog has room again
    while (::accept(full[0].fd(), nullptr, nullptr) >= 0) {
    }
  });
  loop.run_until([&] { return outcome.has_value(); });
  CHECK(std::holds_alternative<std::shared_ptr<Connection>>(*outcome));
  CHECK(std::chrono::steady_clock::now() - began < 900ms);
}

TEST_CASE("after a cancel nobody is called") {
  TestLoop loop;
  const auto listening = listen_at("127.0.0.1:0");
  Attempt attempt(loop, address_of(listening[0]));
  bool was_called = false;
  attempt.connector->connect([&](Outcome) { was_called = true; });
  attempt.connector->cancel();
  for (int turn = 0; turn < 10; ++turn) loop.run_ready();
  CHECK_FALSE(was_called);
  attempt.connector->connect([&](Outcome) { was_called = true; });
  loop.run_until([&] { return was_called; });
}

TEST_CASE("the addresses of a name take turns until one is marked as good") {
  TestLoop loop;
  auto listenings = muster::net::listen_at({"localhost:0"}, {});
  REQUIRE(listenings);
  if (listenings->size() < 2) {
    MESSAGE("skipped: localhost has one address on this machine");
    return;
  }
  const std::string port = std::to_string((*listenings)[0].address().port());
  Attempt attempt(loop, "localhost:" + port);
  const std::string first = attempt.connected_to();
  const std::string second = attempt.connected_to();
  CHECK(first != second);
  attempt.connector->mark_good();
  CHECK(attempt.connected_to() == second);
  CHECK(attempt.connected_to() == first);
}

}  // namespace
