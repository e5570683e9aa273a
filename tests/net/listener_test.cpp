#include "net/listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "net/connection.h"
#include "net/test_loop.h"

namespace {

using namespace std::chrono_literals;
using muster::net::CloseCause;
using muster::net::Connection;
using muster::net::Listener;
using muster::net::SocketAddress;
using muster::net::UniqueFd;
using muster::test::TestLoop;

struct Fixture {
  Fixture() {
    auto listenings = muster::net::listen_at({"127.0.0.1:0"}, {});
    REQUIRE(listenings);
    listener = Listener::create(loop.loop(), std::move((*listenings)[0]), "farewell");
    listener->start({[this](UniqueFd fd, const SocketAddress& peer) {
                       CHECK(peer.is_local_only());
                       accepted.push_back(std::move(fd));
                     },
                     [this](const std::string&) { ++refused_count; },
                     [this] { return make_room && make_room(); }});
  }

  UniqueFd connect() const {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const SocketAddress& address = listener->address();
    REQUIRE(::connect(fd.get(), address.data(), address.size()) == 0);
    return fd;
  }

  TestLoop loop;
  std::shared_ptr<Listener> listener;
  std::vector<UniqueFd> accepted;
  int refused_count = 0;
  std::function<bool()> make_room;
};

TEST_CASE("everybody who comes is accepted") {
  Fixture fixture;
  std::vector<UniqueFd> clients;
  for (int count = 0; count < 200; ++count) clients.push_back(fixture.connect());
  fixture.loop.run_until([&] { return fixture.accepted.size() == clients.size(); });
}

TEST_CASE("a turn accepts so many newcomers that it stays short") {
  constexpr std::size_t accepted_in_turn_max = 32;
  Fixture fixture;
  std::vector<UniqueFd> clients;
  for (int count = 0; count < 200; ++count) clients.push_back(fixture.connect());
  fixture.loop.run_ready();
  CHECK(fixture.accepted.size() > 0);
  CHECK(fixture.accepted.size() <= accepted_in_turn_max);
  fixture.loop.run_until([&] { return fixture.accepted.size() == clients.size(); });
}

/// As many descriptors as may be.
void raise_descriptors() {
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

/// Connections that are ready in each turn.
class Busy {
 public:
  Busy(muster::net::Loop& loop, int count) {
    for (; count > 0; --count) {
      int fds[2];
      REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
      others_.emplace_back(fds[1]);
      connections_.push_back(
          Connection::create(loop, UniqueFd(fds[0]), SocketAddress::local_of(fds[0]), 5s));
      connections_.back()->start(
          {[other = fds[1]](std::string_view) { CHECK(::write(other, "x", 1) == 1); },
           [](CloseCause, const std::string&) {},
           {}});
      CHECK(::write(fds[1], "x", 1) == 1);
    }
  }

 private:
  std::vector<UniqueFd> others_;
  std::vector<std::shared_ptr<Connection>> connections_;
};

TEST_CASE("newcomers are accepted in each turn, however many others are ready") {
  raise_descriptors();
  Fixture fixture;
  std::vector<UniqueFd> clients;
  for (int count = 0; count < 40; ++count) clients.push_back(fixture.connect());
  const Busy others(fixture.loop.loop(), 150);  // more than two turns tell of
  fixture.loop.run_until([&] { return !fixture.accepted.empty(); });
  CHECK(fixture.accepted.size() < clients.size());
  fixture.loop.run_ready();
  CHECK(fixture.accepted.size() == clients.size());
}

/// Lowers the limit on descriptors to those that are open, for as long as it lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const UniqueFd next(::dup(0));  // the lowest that is free
    const rlimit now{static_cast<rlim_t>(next.get()), before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &now) == 0);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

std::string heard_by(const UniqueFd& newcomer) {
  std::string heard(64, '\0');
  const ssize_t count = ::recv(newcomer.get(), heard.data(), heard.size(), 0);
  heard.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return heard;
}

TEST_CASE("without a descriptor newcomers hear why they go, and accepting resumes") {
  Fixture fixture;
  const UniqueFd first = fixture.connect();
  const UniqueFd second = fixture.connect();
  const UniqueFd later = fixture.connect();
  {
    const NoDescriptors scarcity;
    fixture.loop.run_until([&] { return fixture.refused_count == 1; });
    CHECK(heard_by(first) == "farewell");
    // The end of the first gives its descriptor back, and with that the second is sent away. To
    // close one's own end would give one back, too.
    ::shutdown(first.get(), SHUT_WR);
    fixture.loop.run_until([&] { return fixture.refused_count == 2; });
    CHECK(heard_by(second) == "farewell");
    CHECK(fixture.accepted.empty());
  }
  fixture.loop.run_until([&] { return fixture.accepted.size() == 1; });
}

TEST_CASE("without a descriptor a newcomer takes that of somebody who may go") {
  Fixture fixture;
  const UniqueFd first = fixture.connect();
  fixture.loop.run_until([&] { return fixture.accepted.size() == 1; });
  const UniqueFd second = fixture.connect();
  int asked_count = 0;
  fixture.make_room = [&] {
    fixture.accepted.clear();
    return ++asked_count == 1;
  };
  const NoDescriptors scarcity;
  fixture.loop.run_until([&] { return asked_count > 0 && fixture.accepted.size() == 1; });
  CHECK(fixture.refused_count == 0);
  CHECK(heard_by(first).empty());
}

TEST_CASE("those that come have the options of TCP that the listener has") {
  Fixture fixture;
  const UniqueFd client = fixture.connect();
  fixture.loop.run_until([&] { return fixture.accepted.size() == 1; });
  const auto option = [&fixture](int name) {
    int value = -1;
    socklen_t size = sizeof(value);
    ::getsockopt(fixture.accepted[0].get(), IPPROTO_TCP, name, &value, &size);
    return value;
  };
  CHECK(option(TCP_NODELAY) == 1);
  CHECK(option(TCP_USER_TIMEOUT) == 15'000);
}

}  // namespace
