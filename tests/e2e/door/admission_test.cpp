#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/await.h"
#include "support/door.h"

// Who is let in by a server that has credentials, and what the others are told.

namespace {

using muster::ErrorCode;
using muster::Server;
using muster::ServerOptions;
using muster::test::CredentialsFile;
using muster::test::evaluator_key;
using muster::test::HeardLog;
using muster::test::hello_for;
using muster::test::must_fail;
using muster::test::number_of;
using muster::test::other_key;
using muster::test::RawClient;
using muster::test::start_disturbed_server;
using muster::test::tls_context;
using muster::test::TlsClient;
using muster::test::trainer_key;
namespace wire = muster::wire;

const std::string credentials = "team/trainer " + trainer_key +
                                " train-*,other all connections=2\n" + "team/late " +
                                evaluator_key + " train-* all not-after=2020-01-01T00:00:00Z\n";

struct Guarded {
  explicit Guarded(ServerOptions options = {}, const std::string& text = credentials)
      : server(start(std::move(options), text)) {}

  Server start(ServerOptions options, const std::string& text) {
    options.credentials = text;
    options.logger = log.logger();
    return start_disturbed_server(std::move(options));
  }
  const std::string& address() const { return server.addresses().front(); }

  HeardLog log;
  Server server;
};

TEST_CASE("who has a key that is known works in the namespaces of its line") {
  const Guarded guarded;
  TlsClient client(guarded.address(), tls_context(trainer_key));
  REQUIRE(client.begin());
  const auto hello = client.say_hello(hello_for("train-1"));
  REQUIRE(hello.has_value());
  CHECK(hello->status == 0);
  CHECK(client.call(wire::Set{"key", "value", {}, false, false}) == 0);
  CHECK(client.call(wire::Get{"key"}) == 0);
  CHECK(guarded.log.has("admitted as identity team/trainer"));
  CHECK(guarded.log.has("1 identities are known") == false);
  CHECK(guarded.log.has("2 identities are known; by TLS at "));
}

TEST_CASE("all that are refused after their handshake are told the same, byte by byte") {
  const Guarded guarded;
  std::vector<std::string> told;
  const auto refuse = [&](const std::string& key, const std::string& name_space) {
    TlsClient client(guarded.address(), tls_context(key));
    REQUIRE(client.begin());
    std::string bytes;
    wire::append_client_hello(bytes, hello_for(name_space));
    client.send(bytes);
    told.push_back(client.receive(wire::server_hello_bytes));
    CHECK(client.is_closed());
  };
  refuse(evaluator_key, "train-1");  // over
  refuse(trainer_key, "foreign");    // without a right
  refuse(evaluator_key, "foreign");  // both
  const auto hello = wire::decode_server_hello(told.front());
  REQUIRE(hello.has_value());
  CHECK(hello->status == number_of(ErrorCode::permission_denied));
  CHECK(told[1] == told[0]);
  CHECK(told[2] == told[0]);
  CHECK(guarded.log.has("not admitted: team/late: its credential was valid until"));
  CHECK(guarded.log.has("not admitted: team/trainer: it has no right in the namespace 'foreign'"));
}

TEST_CASE("an unknown key and a wrong one fail in the handshake, and alike") {
  const Guarded guarded;
  const auto known = tls_context(trainer_key);
  // A client that names a key of which it does not have the secret.
  const auto wrong = [] {
    using muster::net::tls::derive;
    const auto key = muster::auth::Key::read(trainer_key).value();
    const auto id = derive(key.bytes(), muster::auth::info_of_id("")).value();
    const std::string name(reinterpret_cast<const char*>(id.data()), 8);
    const auto secret = derive("guessed", "guessed").value();
    return muster::net::tls::TlsContext::client(name, secret).value();
  }();
  std::vector<std::string> failures;
  for (const auto& context : {wrong, tls_context(other_key), tls_context(trainer_key, "name")}) {
    TlsClient client(guarded.address(), context);
    CHECK_FALSE(client.begin());
    failures.push_back(client.took());
    CHECK(client.is_closed());
  }
  CHECK_FALSE(failures[0].empty());
  CHECK(failures[1] == failures[0]);
  CHECK(failures[2] == failures[0]);
  CHECK(guarded.log.has("not admitted: team/trainer: it has not proved that it has the key"));
  CHECK(guarded.log.has("not admitted: nobody has the key "));
}

TEST_CASE("keys are good for a server of the name that the client says") {
  ServerOptions options;
  options.server_name = "cluster-1";
  const Guarded guarded(options);
  TlsClient right(guarded.address(), tls_context(trainer_key, "cluster-1"));
  CHECK(right.begin());
  TlsClient wrong(guarded.address(), tls_context(trainer_key, "cluster-2"));
  CHECK_FALSE(wrong.begin());
}

TEST_CASE("an identity has as many connections as its line says, beside sessions that come back") {
  const Guarded guarded;
  const auto context = tls_context(trainer_key);
  TlsClient first(guarded.address(), context);
  TlsClient second(guarded.address(), context);
  TlsClient third(guarded.address(), context);
  REQUIRE(first.begin());
  REQUIRE(second.begin());
  REQUIRE(third.begin());
  const auto hello = first.say_hello(hello_for("train-1")).value();
  CHECK(hello.status == 0);
  CHECK(second.say_hello(hello_for("train-2")).value().status == 0);
  CHECK(third.say_hello(hello_for("train-1")).value().status ==
        number_of(ErrorCode::resource_exhausted));
  CHECK(guarded.log.has("identity team/trainer has its 2 connections"));
  TlsClient back(guarded.address(), context);
  REQUIRE(back.begin());
  wire::ClientHello resume = hello_for("train-1");
  resume.incarnation = hello.incarnation;
  resume.session_id = hello.session_id;
  resume.token = hello.token;
  const auto answer = back.say_hello(resume);
  REQUIRE(answer.has_value());
  CHECK(answer->status == 0);
}

TEST_CASE("without memory for its TLS a new session is busy, and one that comes back is served") {
  ServerOptions options;
  options.memory_bytes_max = 1U << 20;
  const Guarded guarded(options, "team/trainer " + trainer_key + " * all\n");
  const auto context = tls_context(trainer_key);
  const auto begin = [&](const wire::ClientHello& hello) {
    auto client = std::make_unique<TlsClient>(guarded.address(), context);
    REQUIRE(client->begin());
    auto answer = client->say_hello(hello).value();
    return std::pair(std::move(client), std::move(answer));
  };
  const auto first = begin(hello_for("train"));
  std::vector<std::unique_ptr<TlsClient>> clients;
  for (;;) {
    auto [client, answer] = begin(hello_for("train"));
    if (answer.status == number_of(ErrorCode::busy)) break;
    REQUIRE(answer.status == 0);
    clients.push_back(std::move(client));
    REQUIRE(clients.size() < 60);
  }
  CHECK(clients.size() > 40);
  CHECK(guarded.log.has("there is none for one more encrypted session"));
  wire::ClientHello resume = hello_for("train");
  resume.incarnation = first.second.incarnation;
  resume.session_id = first.second.session_id;
  resume.token = first.second.token;
  CHECK(begin(resume).second.status == 0);
  clients.clear();
  muster::test::await([&] { return begin(hello_for("train")).second.status == 0; });
}

TEST_CASE("at a Unix socket the system tells who comes") {
  const CredentialsFile folder("");
  const auto try_as = [&](const std::string& line) {
    ServerOptions options;
    options.listen = {"unix:" + folder.folder() + "/socket"};
    const Guarded guarded(options, line + "\n");
    RawClient client(guarded.address());
    return client.say_hello(hello_for("train-1")).status;
  };
  const std::string uid = std::to_string(::getuid());
  const std::string gid = std::to_string(::getgid());
  CHECK(try_as("unix:uid=" + uid + " train-* all as=team/me") == 0);
  CHECK(try_as("unix:gid=" + gid + " train-* all as=team/us") == 0);
  const auto denied = number_of(ErrorCode::permission_denied);
  CHECK(try_as("unix:uid=54321 train-* all as=team/me") == denied);
  CHECK(try_as("unix:uid=" + uid + " eval all as=team/me") == denied);
  CHECK(try_as("a " + trainer_key + " * all") == denied);
}

TEST_CASE("a plain listener is asked for by name, at a loopback address, and asks nobody") {
  ServerOptions options;
  options.listen = {"127.0.0.1:0", "plain:127.0.0.1:0"};
  const Guarded guarded(options);
  RawClient plain(guarded.server.addresses()[1]);
  CHECK(plain.say_hello().status == 0);
  CHECK(guarded.log.has("whoever reaches it has all rights at 127.0.0.1:"));
  TlsClient tls(guarded.server.addresses()[0], tls_context(trainer_key));
  CHECK(tls.begin());
}

TEST_CASE("options that cannot be meant are refused") {
  const auto refused = [](ServerOptions options) {
    return must_fail(Server::start(std::move(options))).code;
  };
  ServerOptions both;
  both.credentials = credentials;
  both.credentials_file = "/nowhere";
  CHECK(refused(both) == ErrorCode::invalid_argument);
  ServerOptions stranger;
  stranger.credentials = credentials;
  stranger.allow_unauthenticated = true;
  CHECK(refused(stranger) == ErrorCode::invalid_argument);
  ServerOptions name;
  name.server_name = "cluster-1";
  CHECK(refused(name) == ErrorCode::invalid_argument);
  ServerOptions half;
  half.credentials = credentials;
  half.client_authorities_file = "/nowhere";
  CHECK(refused(half) == ErrorCode::invalid_argument);
  ServerOptions wrong;
  wrong.credentials = "team/trainer short train-* all\n";
  CHECK(refused(wrong) == ErrorCode::invalid_argument);
  for (const std::string address : {"plain:0.0.0.0:0", "plain::0", "plain:unix:@muster-plain"}) {
    ServerOptions open;
    open.credentials = credentials;
    open.listen = {address};
    CHECK(refused(open) == ErrorCode::permission_denied);
  }
  ServerOptions everywhere;
  everywhere.listen = {"0.0.0.0:0"};
  CHECK(refused(everywhere) == ErrorCode::permission_denied);
  everywhere.credentials = credentials;
  CHECK(Server::start(everywhere).has_value());
}

TEST_CASE("a connection that ends without TLS's own end has the grace, as any other") {
  ServerOptions options;
  options.grace = std::chrono::seconds(5);
  const Guarded guarded(options);
  const auto context = tls_context(trainer_key);
  wire::ServerHello hello;
  {
    TlsClient client(guarded.address(), context);
    REQUIRE(client.begin());
    hello = client.say_hello(hello_for("train-1")).value();
    REQUIRE(hello.status == 0);
    CHECK(client.call(wire::Set{"key", "value", {}, false, false}) == 0);
  }
  muster::test::await([&] { return guarded.log.has(": ended: "); });
  TlsClient back(guarded.address(), context);
  REQUIRE(back.begin());
  wire::ClientHello resume = hello_for("train-1");
  resume.incarnation = hello.incarnation;
  resume.session_id = hello.session_id;
  resume.token = hello.token;
  const auto answer = back.say_hello(resume).value();
  CHECK(answer.status == 0);
  CHECK(answer.resumed);
}

}  // namespace
