#include "net/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include "net/test_loop.h"
#include "net/unique_fd.h"

namespace {

using namespace std::chrono_literals;
using muster::net::CloseCause;
using muster::net::Connection;
using muster::net::SharedBytes;
using muster::net::SocketAddress;
using muster::net::UniqueFd;
using muster::test::TestLoop;

/// A connection under test and the plain socket at its other end.
struct Pair {
  explicit Pair(TestLoop& loop) {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    other = UniqueFd(fds[1]);
    REQUIRE(socket);
    connection =
        Connection::create(loop.loop(), UniqueFd(fds[0]), SocketAddress::local_of(fds[0]), 5s);
  }

  void start() {
    connection->start({[this](std::string_view bytes) { received += bytes; },
                       [this](CloseCause why, const std::string&) { cause = why; },
                       [this] { ++drained_count; }});
  }

  void write(std::string_view bytes) {
    REQUIRE(::send(other.get(), bytes.data(), bytes.size(), 0) ==
            static_cast<ssize_t>(bytes.size()));
  }

  /// What the other end has got, without waiting.
  std::string read(std::size_t bytes_max = 1U << 20) {
    std::string bytes(bytes_max, '\0');
    const ssize_t count = ::recv(other.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return bytes;
  }

  bool other_sees_end() {
    char byte = 0;
    return ::recv(other.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }

  std::shared_ptr<Connection> connection;
  UniqueFd other;
  std::string received;
  std::optional<CloseCause> cause;
  int drained_count = 0;
};

TEST_CASE("bytes that come are handed on") {
  TestLoop loop;
  Pair pair(loop);
  pair.start();
  pair.write("hello");
  loop.run_until([&] { return pair.received == "hello"; });
  pair.write(" again");
  loop.run_until([&] { return pair.received == "hello again"; });
}

TEST_CASE("the next bytes are read to where the owner wants them, and those after them are not") {
  TestLoop loop;
  Pair pair(loop);
  std::string room(100, '.');
  std::vector<const char*> places;
  pair.connection->start({[&](std::string_view bytes) {
                            pair.received += bytes;
                            places.push_back(bytes.data());
                          },
                          [](CloseCause, const std::string&) {},
                          {}});
  pair.connection->read_into(room);
  pair.write("hello");
  loop.run_until([&] { return pair.received == "hello"; });
  CHECK(room.substr(0, 6) == "hello.");
  CHECK(places == std::vector<const char*>{room.data()});
  pair.write(" again");
  loop.run_until([&] { return pair.received == "hello again"; });
  CHECK(room.substr(0, 6) == "hello.");
  pair.connection->read_into(room);
  pair.connection->read_into({});
  pair.write("!");
  loop.run_until([&] { return pair.received == "hello again!"; });
  CHECK(room.substr(0, 6) == "hello.");
}

TEST_CASE("more bytes than there is room for come in order") {
  TestLoop loop;
  Pair pair(loop);
  std::string room(10, '.');
  pair.connection->start({[&](std::string_view bytes) {
                            pair.received += bytes;
                            pair.connection->read_into(room);
                          },
                          [](CloseCause, const std::string&) {},
                          {}});
  pair.connection->read_into(room);
  std::string sent;
  for (int number = 0; number < 100; ++number) sent += std::to_string(number) + ",";
  pair.write(sent);
  loop.run_until([&] { return pair.received.size() >= sent.size(); });
  CHECK(pair.received == sent);
}

TEST_CASE("what is queued leaves together when it is flushed") {
  TestLoop loop;
  Pair pair(loop);
  pair.start();
  for (int count = 0; count < 100; ++count) pair.connection->send("0123456789");
  CHECK(pair.read().empty());
  CHECK(pair.connection->unsent_bytes() == 1000);
  pair.connection->flush();
  CHECK(pair.read().size() == 1000);
  CHECK(pair.connection->unsent_bytes() == 0);
}

TEST_CASE("what is queued while bytes are received leaves after them by itself") {
  TestLoop loop;
  Pair pair(loop);
  pair.connection->start({[&](std::string_view) {
                            pair.connection->send("one,");
                            pair.connection->send("two");
                          },
                          [](CloseCause, const std::string&) {},
                          {}});
  pair.write("?");
  std::string answer;
  loop.run_until([&] { return !(answer = pair.read()).empty(); });
  CHECK(answer == "one,two");
}

TEST_CASE("many bytes are sent from where they are, in order, and are let go when they have left") {
  TestLoop loop;
  Pair pair(loop);
  pair.start();
  const auto large = std::make_shared<const std::string>(16U << 20, 'x');
  pair.connection->send("head");
  pair.connection->send(SharedBytes{*large, large});
  pair.connection->send("tail");
  CHECK(pair.connection->unsent_own_bytes() == 8);
  CHECK(large.use_count() == 2);
  pair.connection->flush();
  CHECK(pair.connection->unsent_bytes() > 0);
  CHECK(pair.connection->stalled_since() != muster::base::far_future);
  std::string got;
  loop.run_until([&] {
    got += pair.read();
    return got.size() == large->size() + 8;
  });
  CHECK(got.substr(0, 5) == "headx");
  CHECK(got.substr(got.size() - 5) == "xtail");
  loop.run_until([&] { return pair.connection->unsent_bytes() == 0; });
  CHECK(large.use_count() == 1);
  CHECK(pair.connection->stalled_since() == muster::base::far_future);
  CHECK(pair.drained_count > 0);
}

TEST_CASE("a queued value costs little memory, all of it counted, and none when it has left") {
  TestLoop loop;
  Pair pair(loop);
  pair.start();
  const auto value = std::make_shared<const std::string>(2048, 'x');
  const std::size_t count = 5000;
  for (std::size_t sent = 0; sent < count; ++sent) {
    pair.connection->send("a head of 24 characters.");
    pair.connection->send(SharedBytes{*value, value});
  }
  pair.connection->flush();
  const std::size_t left = pair.connection->unsent_pieces();
  REQUIRE(left > count / 2);
  CHECK(left < count);
  CHECK(pair.connection->unsent_own_bytes() >= left * 24 - 24);
  CHECK(pair.connection->held_bytes() >= left * (24 + 48) - 24);
  CHECK(pair.connection->held_bytes() <= 2 * left * (24 + 48) + 1024);
  std::string got;
  loop.run_until([&] {
    got += pair.read();
    return got.size() == count * (2048 + 24);
  });
  loop.run_until([&] { return pair.connection->unsent_bytes() == 0; });
  CHECK(pair.connection->held_bytes() == 0);
  CHECK(pair.connection->unsent_pieces() == 0);
  CHECK(value.use_count() == 1);
}

TEST_CASE("the memory of a queue becomes less with what waits") {
  TestLoop loop;
  Pair pair(loop);
  pair.start();
  pair.connection->send(std::string(8U << 20, 'x'));
  pair.connection->flush();
  const std::uint64_t before = pair.connection->held_bytes();
  CHECK(before >= pair.connection->unsent_bytes());
  loop.run_until([&] {
    pair.read();
    return pair.connection->unsent_bytes() < 1U << 20;
  });
  CHECK(pair.connection->held_bytes() < before / 2);
}

TEST_CASE("own bytes and bytes by reference leave in their order, whatever the socket takes") {
  TestLoop loop;
  Pair pair(loop);
  pair.start();
  std::uint64_t state = 1;
  const auto draw = [&state](std::uint64_t below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % below;
  };
  std::string sent;
  std::string got;
  for (int step = 0; step < 3000; ++step) {
    const bool is_shared = draw(3) == 0;
    std::string bytes(is_shared ? 2048 + draw(5000) : draw(300),
                      static_cast<char>('a' + step % 26));
    sent += bytes;
    if (is_shared) {
      const auto shared = std::make_shared<const std::string>(std::move(bytes));
      pair.connection->send(SharedBytes{*shared, shared, draw(2) == 0});
    } else {
      pair.connection->send(bytes);
    }
    if (draw(20) == 0) pair.connection->flush();
    if (draw(30) == 0) got += pair.read(1 + draw(60'000));
    if (draw(30) == 0) loop.loop().turn_now();
  }
  pair.connection->flush();
  loop.run_until([&] {
    got += pair.read(1 + draw(60'000));
    return got.size() == sent.size();
  });
  CHECK(got == sent);
  loop.run_until([&] { return pair.connection->unsent_bytes() == 0; });
  CHECK(pair.connection->unsent_own_bytes() == 0);
  CHECK(pair.connection->unsent_for_one_bytes() == 0);
}

TEST_CASE("a peer that takes its bytes slowly is not one that takes nothing") {
  TestLoop loop;
  Pair pair(loop);
  pair.start();
  const auto large = std::make_shared<const std::string>(16U << 20, 'x');
  pair.connection->send(SharedBytes{*large, large});
  pair.connection->flush();
  const auto blocked = pair.connection->stalled_since();
  REQUIRE(blocked != muster::base::far_future);
  std::size_t taken_bytes = 0;
  loop.run_until([&] {
    taken_bytes += pair.read(64 * 1024).size();
    return pair.connection->stalled_since() > blocked;
  });
  CHECK(pair.connection->stalled_since() != muster::base::far_future);
  CHECK(pair.connection->unsent_bytes() > 0);
  CHECK(taken_bytes < large->size());
}

TEST_CASE("what the owner sends when the socket has drained leaves by itself") {
  TestLoop loop;
  Pair pair(loop);
  bool has_sent = false;
  pair.connection->start({[](std::string_view) {}, [](CloseCause, const std::string&) {},
                          [&] {
                            if (has_sent || pair.connection->unsent_bytes() > 0) return;
                            has_sent = true;
                            pair.connection->send("the next part");
                          }});
  const std::string first(4U << 20, 'x');
  pair.connection->send(first);
  pair.connection->flush();
  REQUIRE(pair.connection->unsent_bytes() > 0);
  std::string got;
  loop.run_until([&] {
    got += pair.read();
    return got.size() == first.size() + 13;
  });
  CHECK(got.substr(first.size()) == "the next part");
}

TEST_CASE("a peer that sends without a break lets others have their turn") {
  TestLoop loop;
  Pair busy(loop);
  Pair other(loop);
  other.start();
  std::string room(4096, '.');
  const std::string piece(room.size(), 'x');
  constexpr int reads_max = 10'000;
  int reads = 0;
  busy.connection->start({[&](std::string_view) {
                            if (++reads == 1) other.write("!");
                            if (reads == reads_max || !other.received.empty()) return;
                            busy.connection->read_into(room);
                            busy.write(piece);
                          },
                          [](CloseCause, const std::string&) {},
                          {}});
  busy.connection->read_into(room);
  busy.write(piece);
  loop.run_until([&] { return !other.received.empty(); });
  // A turn takes 256 KiB of each: 64 of these pieces.
  CHECK(reads <= 200);
}

TEST_CASE("many pieces arrive in their order") {
  TestLoop loop;
  Pair pair(loop);
  pair.start();
  std::string expected;
  for (int number = 0; number < 500; ++number) {
    const auto piece =
        std::make_shared<const std::string>(3000, static_cast<char>('a' + number % 26));
    const std::string mark = std::to_string(number);
    pair.connection->send(SharedBytes{*piece, piece});
    pair.connection->send(mark);
    expected += *piece + mark;
  }
  pair.connection->flush();
  std::string got;
  loop.run_until([&] {
    got += pair.read(10'000);
    return got.size() >= expected.size();
  });
  CHECK(got == expected);
}

TEST_CASE("what is queued while older bytes wait follows them, and nothing is sent twice") {
  TestLoop loop;
  Pair pair(loop);
  pair.start();
  const auto large = std::make_shared<const std::string>(1U << 20, 'x');
  std::string expected;
  std::string got;
  for (int number = 0; number < 20; ++number) {
    const std::string mark = "<" + std::to_string(number) + ">";
    pair.connection->send(mark);
    pair.connection->send(SharedBytes{*large, large});
    pair.connection->flush();
    expected += mark + *large;
    const std::size_t half = expected.size() - large->size() / 2;
    loop.run_until([&] {
      got += pair.read(half - got.size());
      return got.size() == half;
    });
  }
  loop.run_until([&] {
    got += pair.read();
    return got.size() >= expected.size();
  });
  loop.run_until([&] { return pair.connection->unsent_bytes() == 0; });
  CHECK(got == expected);
  CHECK(pair.connection->unsent_own_bytes() == 0);
}

TEST_CASE("the end of the peer is told once, with its cause") {
  TestLoop loop;
  Pair pair(loop);
  pair.start();
  pair.write("last");
  pair.other.reset();
  loop.run_until([&] { return pair.cause.has_value(); });
  CHECK(pair.received == "last");
  CHECK(*pair.cause == CloseCause::by_peer);
  CHECK_FALSE(pair.connection->is_open());
}

TEST_CASE("writing to a peer that is gone is told as its end, not from within the call") {
  TestLoop loop;
  Pair pair(loop);
  pair.start();
  pair.connection->pause_reading();
  loop.run_ready();
  pair.other.reset();
  pair.connection->send("nobody reads this");
  pair.connection->flush();
  CHECK_FALSE(pair.cause.has_value());
  loop.run_until([&] { return pair.cause.has_value(); });
  CHECK(*pair.cause == CloseCause::by_peer);
}

TEST_CASE("what a peer sent before it was gone comes, also when a write notices it first") {
  TestLoop loop;
  Pair pair(loop);
  pair.start();
  pair.write("goodbye");
  pair.other = UniqueFd();
  pair.connection->send("an event");
  pair.connection->flush();
  CHECK(pair.received.empty());
  loop.run_until([&] { return pair.cause.has_value(); });
  CHECK(pair.received == "goodbye");
}

TEST_CASE("closing calls nobody back and lets go of what was queued") {
  TestLoop loop;
  Pair pair(loop);
  pair.start();
  const auto bytes = std::make_shared<const std::string>(8U << 20, 'x');
  pair.connection->send(SharedBytes{*bytes, bytes});
  pair.connection->flush();
  pair.connection->close();
  CHECK(bytes.use_count() == 1);
  loop.run_ready();
  CHECK_FALSE(pair.cause.has_value());
}

TEST_CASE("a connection may be closed by what it has received") {
  TestLoop loop;
  Pair pair(loop);
  bool was_called = false;
  pair.connection->start({[&](std::string_view) {
                            was_called = true;
                            pair.connection->close();
                            pair.connection.reset();
                          },
                          [](CloseCause, const std::string&) {},
                          {}});
  pair.write("go");
  loop.run_until([&] { return was_called; });
  loop.run_ready();
  CHECK(pair.other_sees_end());
}

TEST_CASE("a connection that is to leave sends what is queued and waits for the peer's end") {
  TestLoop loop;
  Pair pair(loop);
  pair.start();
  const auto bytes = std::make_shared<const std::string>(4U << 20, 'x');
  pair.connection->send(SharedBytes{*bytes, bytes});
  pair.connection->close_after_flush(20s);
  CHECK(pair.connection->is_lingering());
  pair.write("this is dropped");
  std::string got;
  loop.run_until([&] {
    got += pair.read();
    return got.size() == bytes->size();
  });
  loop.run_until([&] { return pair.other_sees_end(); });
  CHECK(pair.connection->is_lingering());
  pair.other.reset();
  loop.run_until([&] { return !pair.connection->is_lingering(); });
  CHECK(pair.received.empty());
  CHECK_FALSE(pair.cause.has_value());
}

TEST_CASE("a connection that is to leave does not wait for ever") {
  TestLoop loop;
  Pair pair(loop);
  pair.start();
  const auto bytes = std::make_shared<const std::string>(8U << 20, 'x');
  pair.connection->send(SharedBytes{*bytes, bytes});
  pair.connection->close_after_flush(50ms);
  loop.run_until([&] { return !pair.connection->is_lingering(); });
  CHECK(bytes.use_count() == 1);
}

TEST_CASE("while reading is paused nothing is handed on") {
  TestLoop loop;
  Pair pair(loop);
  pair.start();
  pair.connection->pause_reading();
  pair.write("later");
  for (int turn = 0; turn < 10; ++turn) loop.run_ready();
  CHECK(pair.received.empty());
  pair.connection->resume_reading();
  loop.run_until([&] { return pair.received == "later"; });
}

}  // namespace
