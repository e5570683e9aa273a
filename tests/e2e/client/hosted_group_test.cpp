#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <numeric>

#include "muster/codec_cereal.h"
#include "muster/inspect.h"
#include "support/frame_proxy.h"
#include "support/ranks.h"

namespace muster::test {
namespace {

using Group = StatelessProcessGroup;

/// A socket that listens on a free port of loopback.
struct BoundSocket {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::uint16_t port = 0;

  BoundSocket() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(fd, 16) == 0);
    REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port = ntohs(address.sin_port);
  }
};

std::string free_unix_address() {
  static std::atomic<int> number{0};
  return "unix:/tmp/muster-test-" + std::to_string(::getpid()) + "-" + std::to_string(++number);
}

TEST_CASE("rank 0 serves on the socket it was given, everybody joins") {
  const BoundSocket socket;
  run_ranks(3, [&](int rank) {
    HostedGroupOptions options;
    if (rank == 0) options.listening_socket = socket.fd;
    auto group = must(Group::create("127.0.0.1", socket.port, rank, 3, 3600s, 20s, options));
    CHECK(group.name() == "default");
    CHECK(must(group.all_gather_obj(rank)) == std::vector<int>{0, 1, 2});
    check_healthy(group.store());
    must(group.barrier());
  });
}

TEST_CASE("rank 0 serves on a Unix socket") {
  const std::string address = free_unix_address();
  run_ranks(2, [&](int rank) {
    auto group = must(Group::create(address, 0, rank, 2, 3600s, 20s));
    CHECK(must(group.broadcast_obj(rank + 10, Rank{0})) == 10);
    check_healthy(group.store());
    must(group.barrier());
  });
}

TEST_CASE("an address in use is joined only by a group with a name") {
  auto server = start_server();
  const std::uint16_t port = server.port();
  CHECK(must_fail(Group::create("127.0.0.1", port, 0, 1, 3600s, 5s)).code ==
        ErrorCode::address_in_use);
  HostedGroupOptions always;
  always.name = "named";
  always.host_server = HostServer::always;
  const Error error = must_fail(Group::create("127.0.0.1", port, 0, 1, 3600s, 5s, always));
  CHECK(error.code == ErrorCode::address_in_use);
  CHECK(error.operation == "create");
  CHECK(error.group == "named");

  HostedGroupOptions named;
  named.name = "named";
  auto joined = must(Group::create("127.0.0.1", port, 0, 1, 3600s, 5s, named));
  must(joined.barrier());
  HostedGroupOptions never;
  never.host_server = HostServer::never;
  auto other = must(Group::create("127.0.0.1", port, 0, 1, 3600s, 5s, never));
  must(other.barrier());
}

TEST_CASE("what makes no sense as host and port is refused") {
  const auto code = [](std::string_view host, std::uint16_t port, int rank, int size,
                       std::chrono::seconds timeout = 5s) {
    return must_fail(Group::create(host, port, rank, size, 3600s, timeout)).code;
  };
  CHECK(code("127.0.0.1", 0, 0, 2) == ErrorCode::invalid_argument);
  CHECK(code("127.0.0.1", 1, 2, 2) == ErrorCode::invalid_argument);
  CHECK(code("127.0.0.1", 1, 0, 0) == ErrorCode::invalid_argument);
  CHECK(code("127.0.0.1", 1, 0, 2, 0s) == ErrorCode::invalid_argument);
  CHECK(code("unix:/tmp/x", 5, 0, 2) == ErrorCode::invalid_argument);
  CHECK(code("0.0.0.0", 29517, 0, 1) == ErrorCode::permission_denied);
}

TEST_CASE("a rank 0 that nobody joins names the missing and stops serving") {
  const std::string address = free_unix_address();
  const Error error = must_fail(Group::create(address, 0, 0, 3, 3600s, 1s));
  CHECK(error.code == ErrorCode::timed_out);
  CHECK(error.rank_ranges == std::vector<RankRange>{{1, 2}});
  CHECK(error.operation == "create");
  auto again = must(Group::create(address, 0, 0, 1, 3600s, 5s));
  must(again.barrier());
}

TEST_CASE("a rank 0 to whom a client of TCPStore comes names it beside the missing") {
  const BoundSocket socket;
  HostedGroupOptions options;
  options.listening_socket = socket.fd;
  auto group = std::async(std::launch::async, [&] {
    return Group::create("127.0.0.1", socket.port, 0, 2, 3600s, 2s, options);
  });
  const int stranger = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(socket.port);
  REQUIRE(::connect(stranger, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  REQUIRE(::send(stranger, "\x00\xce\xf7\x85\x3c", 5, MSG_NOSIGNAL) == 5);
  char answer = 0;
  CHECK(::recv(stranger, &answer, 1, 0) <= 0);
  socklen_t size = sizeof(address);
  REQUIRE(::getsockname(stranger, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(stranger);
  const Error error = must_fail(group.get());
  CHECK(error.code == ErrorCode::timed_out);
  CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
  const std::string name = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  CHECK(error.detail.find(name) != std::string::npos);
}

TEST_CASE("a rank whose group nobody serves names rank 0") {
  const Error error = must_fail(Group::create(free_unix_address(), 0, 1, 2, 3600s, 1s));
  CHECK(error.code == ErrorCode::unavailable);
  CHECK(error.rank_ranges == std::vector<RankRange>{{0, 0}});
  REQUIRE(error.ranks.size() == 1);
  CHECK_FALSE(error.ranks[0].joined);
}

/// Of a rank 0 that dies without a word, and comes back.
std::uint16_t port_of(const FrameProxy& proxy) {
  const std::string& address = proxy.address();
  return static_cast<std::uint16_t>(std::stoul(address.substr(address.rfind(':') + 1)));
}

TEST_CASE("a rank waits for a rank 0 that crashes while the group forms, and comes back") {
  auto server = std::make_optional(start_disturbed_server());
  ServerOptions same;
  same.listen = server->addresses();
  FrameProxy proxy(server->addresses().front());
  std::atomic<int> told_ends{0};
  run_ranks(2, [&](int rank) {
    if (rank == 1) {
      HostedGroupOptions options;
      options.store.on_session_end = [&](const Error&) { ++told_ends; };
      auto group = must(Group::create("127.0.0.1", port_of(proxy), 1, 2, 3600s, 60s, options));
      CHECK(group.rank() == 1);
      must(group.barrier(20s));
      return;
    }
    {
      auto observer = connect(*server);
      await([&] { return held_count(observer, "waits") == 1; });
      proxy.pause();
      proxy.cut();  // no goodbye passes from here on
      await([&] {
        int connected = 0;
        for (const SessionInfo& session : must(inspect_sessions(observer))) {
          connected += session.connected ? 1 : 0;
        }
        return connected == 1;
      });
    }
    server.reset();
    server.emplace(start_disturbed_server(same));
    proxy.cut();
    proxy.resume();
    auto store = connect(*server);
    auto group = join(store, "default", 0, 2, patience(60s));
    must(group.barrier(20s));
  });
  CHECK(told_ends == 0);  // of sessions without a group
}

TEST_CASE("a rank whose rank 0 gives up, and comes back, joins it then") {
  const std::string address = free_unix_address();
  std::promise<void> has_given_up;
  auto until_then = has_given_up.get_future();
  run_ranks(3, [&](int rank) {
    if (rank == 0) {
      CHECK(must_fail(Group::create(address, 0, 0, 3, 3600s, 1s)).code == ErrorCode::timed_out);
      has_given_up.set_value();
    }
    if (rank == 2) until_then.wait();
    auto group = must(Group::create(address, 0, rank, 3, 3600s, 60s));
    must(group.barrier(20s));
  });
}

TEST_CASE("a rank whose rank 0 does not come back says who that was, and what it knew last") {
  auto server = std::make_optional(start_disturbed_server());
  const std::uint16_t port = server->port();
  std::thread observing([&] {
    auto observer = connect(*server);
    await([&] { return held_count(observer, "waits") == 1; });
    observer.close();
    server->stop("it is told to", 0s);
  });
  const Error error = must_fail(Group::create("127.0.0.1", port, 1, 2, 3600s, 3s));
  observing.join();
  CHECK(error.code == ErrorCode::unavailable);
  CHECK(error.operation == "create");
  CHECK(error.happened == Happened::maybe);
  REQUIRE(error.ranks.size() == 1);
  CHECK(error.ranks[0].process.pid == static_cast<std::uint32_t>(::getpid()));
}

TEST_CASE("closing the host waits for the others, and says how many were left") {
  const std::string address = free_unix_address();
  run_ranks(2, [&](int rank) {
    auto group = must(Group::create(address, 0, rank, 2, 3600s, 20s));
    must(group.barrier());
    if (rank == 0) {
      check_healthy(group.store());
      CHECK(must(group.close(20s)) == 0);
      CHECK(must_fail(group.barrier()).code == ErrorCode::closed);
    } else {
      must(group.store().set("still", "served"));
      CHECK(must(group.close()) == 0);
    }
  });
}

TEST_CASE("the hosted server lives on with the handle of the next epoch") {
  const std::string address = free_unix_address();
  run_ranks(2, [&](int rank) {
    std::optional<Group> group = must(Group::create(address, 0, rank, 2, 3600s, 20s));
    group = must(group->regroup());
    must(group->barrier());
    must(group->store().set("k" + std::to_string(rank), "v"));
    check_healthy(group->store());
    must(group->barrier());
  });
}

TEST_CASE("when the hosting process closes, the others hear who it was") {
  const std::string address = free_unix_address();
  run_ranks(2, [&](int rank) {
    auto group = must(Group::create(address, 0, rank, 2, 3600s, 20s));
    must(group.barrier());
    if (rank == 0) return;
    const Error error = must_fail(group.barrier(20s));
    CHECK((error.code == ErrorCode::unavailable || error.code == ErrorCode::rank_left));
    const Error later = must_fail(group.store().get("k", 20s));
    CHECK(later.code == ErrorCode::unavailable);
    REQUIRE(later.ranks.size() == 1);
    CHECK(later.ranks[0].rank == 0);
    CHECK(later.ranks[0].process.pid == static_cast<std::uint32_t>(::getpid()));
  });
}

}  // namespace
}  // namespace muster::test
