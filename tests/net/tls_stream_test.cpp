#include <malloc.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "net/connection.h"
#include "net/test_loop.h"
#include "net/tls/stream.h"
#include "net/unique_fd.h"

namespace {

using namespace std::chrono_literals;
using muster::net::Channel;
using muster::net::CloseCause;
using muster::net::Connection;
using muster::net::SharedBytes;
using muster::net::SocketAddress;
using muster::net::UniqueFd;
using muster::net::tls::derive;
using muster::net::tls::Secret;
using muster::net::tls::TlsContext;
using muster::net::tls::TlsSession;
using muster::net::tls::TlsStream;
using muster::test::TestLoop;

constexpr std::string_view key = "a key of a client that is 32 byte";

/// Who has which key.
using Keys = std::map<std::string, std::string>;

std::shared_ptr<const TlsContext> server_context(Keys keys) {
  auto made = TlsContext::server(
      [keys = std::move(keys)](std::string_view id, unsigned char* secret) {
        const auto found = keys.find(std::string(id));
        if (found == keys.end()) return false;
        const auto derived = derive(found->second, "test");
        std::copy_n(derived->data(), muster::net::tls::secret_bytes, secret);
        return true;
      },
      {});
  REQUIRE_MESSAGE(made.has_value(), made.error().detail);
  return *made;
}

std::shared_ptr<const TlsContext> client_context(const std::string& id, std::string_view own_key) {
  const auto secret = derive(own_key, "test");
  REQUIRE(secret.has_value());
  auto made = TlsContext::client(id, *secret);
  REQUIRE_MESSAGE(made.has_value(), made.error().detail);
  return *made;
}

/// One end, and what its owner has heard.
struct End {
  void begin(TestLoop& loop, UniqueFd fd, const std::shared_ptr<const TlsContext>& context) {
    const SocketAddress address = SocketAddress::local_of(fd.get());
    auto session = TlsSession::create(context);
    REQUIRE(session != nullptr);
    connection = Connection::create(loop.loop(), std::move(fd), address, 5s);
    stream = std::make_shared<TlsStream>(loop.loop(), connection, std::move(session));
    stream->start({[this](std::string_view bytes) { received += bytes; },
                   [this](CloseCause why, const std::string& how) {
                     cause = why;
                     detail = how;
                   },
                   [this] { ++drained_count; }});
  }

  std::shared_ptr<Connection> connection;
  std::shared_ptr<TlsStream> stream;
  std::string received;
  std::optional<CloseCause> cause;
  std::string detail;
  int drained_count = 0;
};

struct Pair {
  explicit Pair(TestLoop& loop, const Keys& keys = {{"alice", std::string(key)}},
                const std::string& id = "alice", std::string_view own_key = key) {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    server.begin(loop, UniqueFd(fds[0]), server_context(keys));
    client.begin(loop, UniqueFd(fds[1]), client_context(id, own_key));
  }
  End server;
  End client;
};

std::string pattern(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t index = 0; index < size; ++index)
    bytes[index] = static_cast<char>(index * 7 + index / 251);
  return bytes;
}

}  // namespace

TEST_CASE("clients with one key share their context, and others do not") {
  const auto secret = derive(key, "test");
  const auto other_secret = derive(key, "other");
  REQUIRE(secret.has_value());
  REQUIRE(other_secret.has_value());
  auto first = TlsContext::client("alice", *secret);
  REQUIRE(first.has_value());
  CHECK(*TlsContext::client("alice", *secret) == *first);
  CHECK(*TlsContext::client("alice", *other_secret) != *first);
  CHECK(*TlsContext::client("bob", *secret) != *first);
}

TEST_CASE("an idle session takes no more memory than is counted for it") {
  TestLoop loop;
  const auto of_server = server_context({{"alice", std::string(key)}});
  const auto of_client = client_context("alice", key);
  std::vector<std::unique_ptr<End>> ends;
  const auto add = [&] {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    End& server = *ends.emplace_back(std::make_unique<End>());
    End& client = *ends.emplace_back(std::make_unique<End>());
    server.begin(loop, UniqueFd(fds[0]), of_server);
    client.begin(loop, UniqueFd(fds[1]), of_client);
    client.stream->send("hello");
    client.stream->flush();
    loop.run_until([&] { return server.received == "hello"; });
    server.stream->send("welcome");
    server.stream->flush();
    loop.run_until([&] { return client.received == "welcome"; });
  };
  for (int warm = 0; warm < 20; ++warm) add();
  const std::size_t before = ::mallinfo2().uordblks;
  constexpr std::size_t count = 50;
  for (std::size_t more = 0; more < count; ++more) add();
  const std::size_t bytes = (::mallinfo2().uordblks - before) / (2 * count);
  CHECK(bytes <= muster::net::tls::session_bytes + 1024);  // and a connection
  CHECK(ends.back()->stream->own_bytes() == muster::net::tls::session_bytes);
}

TEST_CASE("bytes that wait since nobody reads them are counted, and told of") {
  TestLoop loop;
  Pair pair(loop);
  pair.client.stream->send("hello");
  pair.client.stream->flush();
  loop.run_until([&] { return pair.server.received == "hello"; });
  struct Owner final : muster::net::ChannelOwner {
    void received(std::string_view bytes) override {
      got += bytes;
      stream->pause_reading();
    }
    void closed(CloseCause, std::string) override {}
    void drained() override {}
    void kept() override { ++kept_count; }
    TlsStream* stream = nullptr;
    std::string got;
    int kept_count = 0;
  } owner;
  owner.stream = pair.server.stream.get();
  pair.server.stream->pass_to(owner);
  const std::string sent = pattern(50'000);
  pair.client.stream->send(sent);
  pair.client.stream->flush();
  loop.run_until([&] { return owner.kept_count == 1; });
  CHECK(pair.server.stream->own_bytes() > muster::net::tls::session_bytes + 1000);
  loop.run_until([&] {
    pair.server.stream->resume_reading();
    return owner.got.size() == sent.size();
  });
  CHECK(owner.got == sent);
  CHECK(owner.kept_count > 1);
  CHECK(pair.server.stream->own_bytes() == muster::net::tls::session_bytes);
  pair.server.stream->close();
}

TEST_CASE("bytes go both ways, and each side knows the other") {
  TestLoop loop;
  Pair pair(loop);
  pair.client.stream->send("hello");
  pair.client.stream->flush();
  loop.run_until([&] { return pair.server.received == "hello"; });
  CHECK(pair.server.stream->tls().is_established());
  CHECK(pair.server.stream->tls().session().peer_id() == "alice");
  CHECK(pair.client.stream->tls().session().peer_id().empty());
  pair.server.stream->send("welcome");
  pair.server.stream->flush();
  loop.run_until([&] { return pair.client.received == "welcome"; });
  CHECK(pair.client.stream->unsent_bytes() == 0);
  CHECK(pair.server.stream->unsent_bytes() == 0);
}

TEST_CASE("many bytes by reference, with short ones before, between and behind, keep their order") {
  TestLoop loop;
  Pair pair(loop);
  const auto large = std::make_shared<const std::string>(pattern(3'000'000));
  std::string expected;
  for (int round = 0; round < 3; ++round) {
    pair.server.stream->send("short");
    pair.server.stream->send(SharedBytes{*large, large, round == 1});
    expected += "short" + *large;
  }
  pair.server.stream->send("last");
  expected += "last";
  CHECK(pair.server.stream->unsent_bytes() >= expected.size());
  CHECK(pair.server.stream->unsent_for_one_bytes() == large->size());
  pair.server.stream->flush();
  loop.run_until([&] { return pair.client.received.size() == expected.size(); });
  CHECK(pair.client.received == expected);
  CHECK(pair.server.stream->unsent_bytes() == 0);
  CHECK(pair.server.stream->unsent_own_bytes() == 0);
  CHECK(pair.server.stream->unsent_for_one_bytes() == 0);
  CHECK(pair.server.drained_count > 0);
  CHECK(large.use_count() == 1);
}

TEST_CASE("a wrong key and an unknown id fail in the same way, and nothing is told to the owner") {
  TestLoop loop;
  std::vector<std::string> details;
  for (const std::string id : {"alice", "mallory"}) {
    Pair pair(loop, {{"alice", std::string(key)}}, id, "another key of a client, of 32 byte");
    pair.client.stream->send("not to be read");
    pair.client.stream->flush();
    loop.run_until([&] { return pair.server.cause && pair.client.cause; });
    CHECK(pair.server.received.empty());
    CHECK_FALSE(pair.server.stream->tls().is_established());
    details.push_back(pair.client.detail);
    details.push_back(pair.server.detail);
  }
  CHECK(details[0] == details[2]);
  CHECK(details[1] == details[3]);
}

TEST_CASE("a stream that has failed lets TLS go, while why it has failed still leaves") {
  TestLoop loop;
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  const auto context = server_context({{"alice", std::string(key)}});
  const UniqueFd client(fds[1]);  // reads nothing, and does not go
  End server;
  server.begin(loop, UniqueFd(fds[0]), context);
  CHECK(context.use_count() == 2);
  constexpr std::string_view no_tls = "GET / HTTP/1.1\r\n\r\n";
  REQUIRE(::send(client.get(), no_tls.data(), no_tls.size(), 0) > 0);
  loop.run_until([&] { return server.cause.has_value(); });
  CHECK(server.stream->is_lingering());
  CHECK(context.use_count() == 1);
}

TEST_CASE("what is no TLS, and what is cut or changed on the way, is refused") {
  TestLoop loop;
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(600, '\x16'),
                                   std::string("\x8dMSTR\r\n\x1a", 8)}) {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    const UniqueFd other(fds[1]);
    End server;
    server.begin(loop, UniqueFd(fds[0]), server_context({{"alice", std::string(key)}}));
    REQUIRE(::send(fds[1], bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    ::shutdown(fds[1], SHUT_WR);
    loop.run_until([&] { return server.cause.has_value(); });
    CHECK(server.received.empty());
  }
}

TEST_CASE("an end without TLS's own one is the peer's end") {
  TestLoop loop;
  Pair pair(loop);
  pair.client.stream->send("x");
  pair.client.stream->flush();
  loop.run_until([&] { return pair.server.received == "x"; });
  pair.client.connection->close();
  loop.run_until([&] { return pair.server.cause.has_value(); });
  CHECK(pair.server.cause == CloseCause::by_peer);
}

TEST_CASE("what is queued before the end arrives, also much of it") {
  TestLoop loop;
  Pair pair(loop);
  const std::string bytes = pattern(2'000'000);
  pair.server.stream->send(bytes);
  pair.server.stream->close_after_flush(5s);
  loop.run_until([&] { return pair.client.cause.has_value(); });
  CHECK(pair.client.received == bytes);
  CHECK(pair.client.cause == CloseCause::by_peer);
  loop.run_until([&] { return !pair.server.stream->is_lingering(); });
}

TEST_CASE("a reader that pauses gets the rest when it goes on") {
  TestLoop loop;
  Pair pair(loop);
  const std::string bytes = pattern(1'000'000);
  pair.client.stream->send("x");
  pair.client.stream->flush();
  loop.run_until([&] { return pair.server.received == "x"; });
  pair.client.stream->pause_reading();
  pair.server.stream->send(bytes);
  pair.server.stream->flush();
  for (int turn = 0; turn < 20; ++turn) loop.loop().turn(1ms);
  CHECK(pair.client.received.empty());
  CHECK(pair.server.stream->unsent_bytes() > 0);
  pair.client.stream->resume_reading();
  loop.run_until([&] { return pair.client.received.size() == bytes.size(); });
  CHECK(pair.client.received == bytes);
}

TEST_CASE("a stream that waits for the last of its bytes to leave can be closed") {
  TestLoop loop;
  Pair pair(loop);
  pair.client.stream->send("x");
  pair.client.stream->flush();
  loop.run_until([&] { return pair.server.received == "x"; });
  pair.client.stream->pause_reading();  // so that it does not see the end
  pair.server.stream->send("last");
  pair.server.stream->close_after_flush(60s);
  CHECK(pair.server.stream->is_lingering());
  pair.server.stream->close();
  CHECK_FALSE(pair.server.stream->is_lingering());
  CHECK_FALSE(pair.server.connection->is_lingering());
}

TEST_CASE("a stream takes over a connection that has begun, with what came on it") {
  TestLoop loop;
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  const SocketAddress address = SocketAddress::local_of(fds[0]);
  const auto under = Connection::create(loop.loop(), UniqueFd(fds[0]), address, 5s);
  std::string first;
  under->start({[&](std::string_view bytes) {
                  first += bytes;
                  under->pause_reading();
                },
                [](CloseCause, const std::string&) {},
                {}});
  End client;
  client.begin(loop, UniqueFd(fds[1]), client_context("alice", key));
  loop.run_until([&] { return !first.empty(); });

  struct Owner final : muster::net::ChannelOwner {
    void received(std::string_view bytes) override { all += bytes; }
    void closed(CloseCause, std::string) override { is_over = true; }
    void drained() override {}
    std::string all;
    bool is_over = false;
  } owner;
  const auto stream = std::make_shared<TlsStream>(
      loop.loop(), under, TlsSession::create(server_context({{"alice", std::string(key)}})));
  stream->take_over(owner, first);
  client.stream->send("hello");
  client.stream->flush();
  loop.run_until([&] { return owner.all == "hello"; });
  CHECK(stream->tls().session().peer_id() == "alice");
  client.stream->close();
  loop.run_until([&] { return owner.is_over; });
}

namespace {

/// Reads so much the next time that it is asked, and then nothing.
struct RationedOwner final : muster::net::ChannelOwner {
  void received(std::string_view bytes) override { all += bytes; }
  void closed(CloseCause, std::string) override {}
  void drained() override {}
  std::size_t readable_bytes() override {
    ++asked_count;
    return std::exchange(ration_bytes, 0);
  }
  std::string all;
  std::size_t ration_bytes = 0;
  int asked_count = 0;
};

}  // namespace

TEST_CASE("an owner that reads in its turn alone is asked once, and gets what came in that turn") {
  TestLoop loop;
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  End client;
  client.begin(loop, UniqueFd(fds[1]), client_context("alice", key));
  RationedOwner owner;
  const auto under =
      Connection::create(loop.loop(), UniqueFd(fds[0]), SocketAddress::local_of(fds[0]), 5s);
  const auto stream = std::make_shared<TlsStream>(
      loop.loop(), under, TlsSession::create(server_context({{"alice", std::string(key)}})));
  stream->start(owner);
  const auto take_turn = [&](std::size_t ration_bytes) {
    owner.ration_bytes = ration_bytes;
    stream->resume_reading();
    stream->read_now();
    const int asked_count = owner.asked_count;
    for (int turn = 0; turn < 3; ++turn) loop.run_ready();
    CHECK(owner.asked_count - asked_count <= 1);  // what is not read pauses it
  };
  loop.run_until([&] {
    take_turn(4096);
    return client.stream->tls().is_established() && stream->tls().is_established();
  });
  client.stream->send("one");
  client.stream->flush();
  for (int turn = 0; turn < 3; ++turn) loop.run_ready();
  CHECK(owner.all.empty());
  take_turn(4096);
  CHECK(owner.all == "one");

  // A record that is read in parts, of which each takes a turn.
  client.stream->send(pattern(100));
  client.stream->flush();
  for (int turn = 0; turn < 40 && owner.all.size() < 103; ++turn) take_turn(10);
  CHECK(owner.all == "one" + pattern(100));
}
