#include <signal.h>

#include <chrono>
#include <deque>

#include <doctest/doctest.h>

#include "e2e/tcpstore/client.h"
#include "support/await.h"
#include "wire/reply.h"

// Clients of TCPStore's at a real musterd: where TCPStore itself does otherwise.

namespace muster::test::tcpstore {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

TEST_CASE("nothing of a MULTI_SET is seen before all of it has come") {
  const Daemon daemon;
  Client client(daemon.tcpstore());
  Client other(daemon.tcpstore());
  const std::string bytes = multi_set({{"/a", "1"}, {"/b", std::string(5000, '2')}});
  client.send(bytes.substr(0, 4000));
  client.send(bytes.substr(4000, 1000));
  for (int count = 0; count < 10; ++count) CHECK(other.ask(count_keys, 8) == number(0));
  client.send(bytes.substr(5000));
  client.flush();
  CHECK(other.ask(get("/a"), 9) == text("1"));
  CHECK(other.ask(count_keys, 8) == number(2));
}

TEST_CASE("a client that stops in the midst of a request stops nobody") {
  const Daemon daemon;
  std::deque<Client> stopped;
  const std::string bytes = compare_set("/key", "expected", "desired");
  for (std::size_t count = 1; count < bytes.size(); ++count) {
    stopped.emplace_back(daemon.tcpstore()).send(bytes.substr(0, count));
  }
  Client client(daemon.tcpstore());
  CHECK(client.ask(set("/key", "expected") + get("/key"), 16) == text("expected"));
  // They go on where they stopped.
  stopped.front().send(bytes.substr(1));
  CHECK(stopped.front().receive(15) == text("desired"));
  stopped.back().send(bytes.substr(bytes.size() - 1));
  CHECK(stopped.back().receive(15) == text("desired"));
}

TEST_CASE("VALIDATE is taken in any pieces, and nothing else in its place") {
  const Daemon daemon({"--tcpstore", "127.0.0.1:0", "--tcpstore-dialect", "newest"});
  for (std::size_t cut = 1; cut < validate.size(); ++cut) {
    RawClient client(daemon.tcpstore());
    client.send(validate.substr(0, cut));
    Client(daemon.tcpstore()).flush();  // the first piece has been read by now
    client.send(validate.substr(cut) + ping(9));
    CHECK(client.receive(4) == number(9, 4));
  }
  for (const std::string& wrong : {"\0\xCE\xF7\x85\x3D"s, ping(9), get("/a"), "GET / HTTP/1.1"s}) {
    RawClient client(daemon.tcpstore());
    client.send(wrong);
    CHECK(client.receive(1).empty());
  }
  Client twice(daemon.tcpstore());
  twice.send(validate + "\0\xCE\xF7\x85\x3D"s);
  CHECK(twice.receive(1).empty());
}

TEST_CASE("a client of PyTorch 1 needs no VALIDATE, where it may come") {
  const Daemon daemon;
  RawClient client(daemon.tcpstore());
  client.send("\0"s + text("/a") + text("1"));
  client.send("\2"s + text("/a"));
  CHECK(client.receive(9) == text("1"));
}

TEST_CASE("a queue's items go to those who wait in the order in which they began to") {
  const Daemon daemon;
  std::deque<Client> consumers;
  for (int count = 0; count < 10; ++count) {
    consumers.emplace_back(daemon.tcpstore()).send(wait({"/q"}));
    consumers.back().flush();
  }
  Client producer(daemon.tcpstore());
  for (Client& next : consumers) {
    producer.send(push("/q", "item"));
    CHECK(next.receive(1) == stop_waiting);
    CHECK(next.ask(pop("/q"), 20) == number(1) + text("item"));
  }
}

TEST_CASE("a BARRIER counts all who have ever come to it, as by TCPStore") {
  const Daemon daemon;
  Client gives_up(daemon.tcpstore());
  CHECK(gives_up.ask(barrier("/b", 2) + cancel_wait, 1) == wait_cancelled);
  Client client(daemon.tcpstore());
  CHECK(client.ask(barrier("/b", 2), 1) == stop_waiting);
  CHECK(client.ask(barrier("/b", 2), 1) == stop_waiting);
}

TEST_CASE("keys go when all have been gone for the idle lifetime, from that port alone") {
  const Daemon daemon({"--tcpstore", "127.0.0.1:0=one", "--tcpstore", "127.0.0.1:0=two",
                       "--tcpstore-idle-lifetime", "1s"});
  Client stays(daemon.tcpstore(1));
  stays.ask(set("/key", "two") + ping(1), 4);
  Client(daemon.tcpstore(0)).ask(set("/key", "one") + ping(1), 4);
  CHECK(Client(daemon.tcpstore(0)).ask(get("/key"), 11) == text("one"));
  auto operates = RawClient::with_session(daemon.address());
  await([&operates] {
    const auto frame = operates.call(wire::NameSpaces{});
    const auto reply = wire::decode_body<wire::NameSpacesReply>(frame.body);
    for (const auto& entry : reply.value().name_spaces) {
      if (entry.name == "one") return false;
    }
    return true;
  });
  CHECK(Client(daemon.tcpstore(0)).ask(get("/key"), 8) == text(""));
  CHECK(stays.ask(get("/key"), 11) == text("two"));
}

TEST_CASE("a job that restarts at once finds nothing of its last run") {
  const Daemon daemon;
  {
    Client first(daemon.tcpstore());
    first.ask(set("/address", "of the first run") + ping(1), 4);
    Client restarted(daemon.tcpstore());
    CHECK(restarted.ask(get("/address"), 24) == text("of the first run"));
  }
  // Who looks is there, too.
  await([&] { return Client(daemon.tcpstore()).ask(get("/address"), 8) == text(""); });
}

TEST_CASE("two ports are two namespaces; one namespace may have two ports") {
  const Daemon daemon({"--tcpstore", "127.0.0.1:0=a", "--tcpstore", "127.0.0.1:0=b", "--tcpstore",
                       "127.0.0.1:0=a", "--tcpstore", "127.0.0.1:0"});
  REQUIRE(daemon.ports().size() == 5);
  Client a(daemon.tcpstore(0));
  a.ask(set("/key", "a") + ping(1), 4);
  CHECK(Client(daemon.tcpstore(1)).ask(get("/key"), 8) == text(""));
  CHECK(Client(daemon.tcpstore(2)).ask(get("/key"), 9) == text("a"));
  CHECK(Client(daemon.tcpstore(3)).ask(get("/key"), 8) == text(""));
}

TEST_CASE("clients of Muster see the same keys in the namespace of the port") {
  const Daemon daemon;
  Client client(daemon.tcpstore());
  client.ask(set("/key", "value") + wait({"/answer"}) + ping(1), 4);
  wire::ClientHello hello;
  hello.name_space = "tcpstore";
  RawClient own(daemon.address());
  REQUIRE(own.say_hello(hello).status == 0);
  const auto got = own.call(wire::Get{"/key"});
  CHECK(wire::decode_body<wire::ValueReply>(got.body).value().value == "value");
  CHECK(own.call(wire::Set{"/answer", "42", {}, false, false}).header.code == 0);
  CHECK(client.receive(1) == stop_waiting);
}

TEST_CASE("clients of TCPStore see the end of the server as the end of their connection") {
  Daemon daemon;
  Client client(daemon.tcpstore());
  client.send(wait({"/never"}));
  client.flush();
  daemon.process().send_signal(SIGTERM);
  CHECK(client.receive(1).empty());
  CHECK(daemon.process().wait().exit_code == 0);
}

}  // namespace
}  // namespace muster::test::tcpstore
