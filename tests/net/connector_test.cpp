#include "net/connector.h"

#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <string_view>

#include <doctest/doctest.h>

#include "net/address/resolver.h"
#include "net/listening.h"
#include "net/test_loop.h"
#include "net/unique_fd.h"

namespace {

std::atomic<int> connect_count{0};
std::atomic<bool> connects_to_itself{false};

}  // namespace

/// As the system's, but counts, and meets the chance in which TCP connects a socket to itself.
extern "C" int connect(int fd, const sockaddr* address, socklen_t size) {
  ++connect_count;
  if (connects_to_itself) REQUIRE(::bind(fd, address, size) == 0);
  return static_cast<int>(::syscall(SYS_connect, fd, address, size));
}

/// As the system's, but knows the hosts two.test, with the addresses 127.0.0.1 and 127.0.0.2, and
/// own.test, with 127.0.1.1.
extern "C" int getaddrinfo(const char* host, const char* port, const addrinfo* hints,
                           addrinfo** found) {
  static const auto of_system =
      reinterpret_cast<decltype(&::getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  if (host != nullptr && std::string_view(host) == "own.test" &&
      (hints->ai_flags & AI_NUMERICHOST) == 0) {
    return of_system("127.0.1.1", port, hints, found);
  }
  if (host == nullptr || std::string_view(host) != "two.test" ||
      (hints->ai_flags & AI_NUMERICHOST) != 0) {
    return of_system(host, port, hints, found);
  }
  REQUIRE(of_system("127.0.0.1", port, hints, found) == 0);
  REQUIRE(of_system("127.0.0.2", port, hints, &(*found)->ai_next) == 0);
  return 0;
}

namespace {

using namespace std::chrono_literals;
using muster::net::Address;
using muster::net::ConnectError;
using muster::net::ConnectFailure;
using muster::net::Connection;
using muster::net::Connector;
using muster::net::Listening;
using muster::net::parse_address;
using muster::net::SocketAddress;
using muster::net::UniqueFd;
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

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Connector::Options with_attempt_timeout(muster::Duration timeout) {
  Connector::Options options;
  options.attempt_timeout = timeout;
  return options;
}

/// A listener that drops who comes: as many wait as it takes, and nobody accepts them.
class Full {
 public:
  explicit Full(TestLoop& loop) : listening_(listen_at("127.0.0.1:0", 0)) {
    while (taken_.empty() || !std::holds_alternative<ConnectError>(taken_.back())) {
      taken_.push_back(Attempt(loop, address(), with_attempt_timeout(50ms)).connect());
    }
  }
  std::string address() const { return address_of(listening_[0]); }
  std::string port() const { return std::to_string(listening_[0].address().port()); }
  void take_all() {
    while (::accept(listening_[0].fd(), nullptr, nullptr) >= 0) {
    }
  }

 private:
  std::vector<Listening> listening_;
  std::vector<Outcome> taken_;
};

/// A port at which nobody listens, neither at 127.0.0.1 nor at 127.0.0.2, as long as this lives.
class ClosedPort {
 public:
  ClosedPort() {
    for (int tries = 0; tries < 100 && !second_; ++tries) {
      first_ = bound("127.0.0.1:0");
      second_ = bound("127.0.0.2:" + number());
    }
    REQUIRE(second_);
  }
  std::string number() const {
    return std::to_string(SocketAddress::local_of(first_.get()).port());
  }
  /// From now on somebody listens at 127.0.0.2.
  void open_second() { REQUIRE(::listen(second_.get(), 16) == 0); }
  void open_first() { REQUIRE(::listen(first_.get(), 16) == 0); }

 private:
  static UniqueFd bound(const std::string& text) {
    const auto address = parse_address(text);
    REQUIRE(address);
    const auto found = muster::net::resolve_number(address->host, address->port);
    REQUIRE(found);
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const SocketAddress& wanted = found->addresses.at(0);
    if (::bind(fd.get(), wanted.data(), wanted.size()) != 0) return {};
    return fd;
  }

  UniqueFd first_;
  UniqueFd second_;
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

TEST_CASE("a name whose address only this host reaches is named with it") {
  TestLoop loop;
  const std::string port = std::to_string(listen_at("127.0.1.1:0")[0].address().port());
  const ConnectError error = Attempt(loop, "own.test:" + port).failure();
  CHECK(has(error.detail,
            "only processes of this host can reach 127.0.1.1, the address of own.test"));
  CHECK_FALSE(has(Attempt(loop, "127.0.1.1:" + port).failure().detail, "this host"));
}

TEST_CASE("a host name without an address is not resolved") {
  TestLoop loop;
  CHECK(Attempt(loop, "no-such-host.invalid:1").failure().kind == ConnectFailure::not_resolved);
}

TEST_CASE("an address that does not answer is silent, within the attempt's time") {
  TestLoop loop;
  const Full full(loop);
  const auto silent = Attempt(loop, full.address(), with_attempt_timeout(400ms)).failure();
  CHECK(silent.kind == ConnectFailure::silent);
}

TEST_CASE("a lost first try is repeated while the kernel still waits for its answer") {
  TestLoop loop;
  Full full(loop);
  Attempt attempt(loop, full.address(), with_attempt_timeout(1h));
  std::optional<Outcome> outcome;
  const int before = connect_count;
  attempt.connector->connect([&](Outcome result) { outcome = std::move(result); });
  loop.run_until([&] { return connect_count >= before + 2; });
  CHECK_FALSE(outcome);
  full.take_all();  // the backlog has room again
  loop.run_until([&] { return outcome.has_value(); });
  CHECK(std::holds_alternative<std::shared_ptr<Connection>>(*outcome));
}

TEST_CASE("a socket that TCP has connected to itself has found nobody") {
  TestLoop loop;
  const std::string address = address_of(listen_at("127.0.0.1:0")[0]);  // nobody has it any more
  connects_to_itself = true;
  const Outcome outcome = Attempt(loop, address).connect();
  connects_to_itself = false;
  const auto* const error = std::get_if<ConnectError>(&outcome);
  REQUIRE(error);
  CHECK(error->kind == ConnectFailure::refused);
  listen_at(address);  // its port is not in TIME-WAIT
}

TEST_CASE("an address that refuses is followed by the next one of the name") {
  TestLoop loop;
  ClosedPort port;
  Attempt attempt(loop, "two.test:" + port.number());
  CHECK(attempt.failure().kind == ConnectFailure::refused);
  port.open_second();
  CHECK(attempt.connected_to() == "127.0.0.2:" + port.number());
}

/// At two.test, a first address that is silent, and a second one with a listener.
struct SilentFirst {
  explicit SilentFirst(TestLoop& loop) {
    for (int tries = 0; tries < 100 && second.empty(); ++tries) {  // another process may have it
      full.emplace(loop);
      auto listenings = muster::net::listen_at({"127.0.0.2:" + full->port()}, {});
      if (listenings) second = std::move(*listenings);
    }
    REQUIRE_FALSE(second.empty());
  }
  std::string address() const { return "two.test:" + full->port(); }

  std::optional<Full> full;
  std::vector<Listening> second;
};

TEST_CASE("an address that is silent does not hold up the next one") {
  TestLoop loop;
  const SilentFirst silent(loop);
  Attempt attempt(loop, silent.address(), with_attempt_timeout(1h));
  CHECK(attempt.connected_to() == address_of(silent.second[0]));
}

TEST_CASE("an address that was silent in one round is tried again in the next one") {
  TestLoop loop;
  SilentFirst silent(loop);
  silent.second.clear();  // refuses
  Attempt attempt(loop, silent.address(), with_attempt_timeout(1h));
  std::optional<Outcome> outcome;
  attempt.connector->connect([&](Outcome result) { outcome = std::move(result); });
  loop.run_until([&] { return has(attempt.connector->awaited(), "refused"); });
  CHECK(has(attempt.connector->awaited(), silent.full->address() + ": no answer yet"));
  silent.full->take_all();
  loop.run_until([&] { return outcome.has_value(); });
  CHECK(std::holds_alternative<std::shared_ptr<Connection>>(*outcome));
  CHECK(attempt.connector->awaited().empty());
}

TEST_CASE("addresses that stay silent are all named") {
  TestLoop loop;
  const SilentFirst silent(loop);
  const auto error = Attempt(loop, silent.full->address(), with_attempt_timeout(300ms)).failure();
  CHECK(error.detail == silent.full->address() + ": Connection timed out");
}

TEST_CASE("an address that has not answered until a cancel is not the next one's first") {
  TestLoop loop;
  const SilentFirst silent(loop);
  Attempt attempt(loop, silent.address(), with_attempt_timeout(1h));
  const int before = connect_count;
  attempt.connector->connect([](Outcome) { FAIL("nobody has answered"); });
  loop.run_until([&] { return connect_count > before; });
  attempt.connector->cancel();
  CHECK(attempt.connected_to() == address_of(silent.second[0]));
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

TEST_CASE("after a cancel nothing more is tried") {
  TestLoop loop;
  const ClosedPort port;
  Attempt attempt(loop, "two.test:" + port.number());
  const int before = connect_count;
  attempt.connector->connect([](Outcome) { FAIL("it was cancelled"); });
  loop.run_until([&] { return connect_count > before; });
  // The turn that hears that the first address refuses runs this before it goes on.
  loop.loop().post([&] { attempt.connector->cancel(); });
  for (int turn = 0; turn < 10; ++turn) loop.run_ready();
  CHECK(connect_count == before + 1);
  CHECK(attempt.failure().kind == ConnectFailure::refused);
}

TEST_CASE("the addresses of a name take turns until one is marked as good") {
  TestLoop loop;
  ClosedPort port;
  port.open_first();
  port.open_second();
  Attempt attempt(loop, "two.test:" + port.number());
  const std::string first = attempt.connected_to();
  const std::string second = attempt.connected_to();
  CHECK(first != second);
  attempt.connector->mark_good();
  CHECK(attempt.connected_to() == second);
  CHECK(attempt.connected_to() == first);
}

}  // namespace
