// What callers get wrong: the error says what, and nobody else is disturbed.

#include <thread>

#include "muster/codec_json.h"
#include "muster/codec_raw.h"
#include "support/ranks.h"
#include "support/stranger.h"

namespace muster::test {
namespace {

/// An address of this machine on which nobody listens.
std::string closed_port() {
  auto server = start_server();
  return server.addresses().front();
}

Error connection_failure(const std::string& address, Duration timeout) {
  return must_fail(Store::connect(address, {}, timeout));
}

}  // namespace

TEST_CASE("addresses that cannot be are refused at once") {
  for (const char* address : {"", "localhost", "localhost:", "localhost:99999", "localhost:port",
                              "[::1:80", "unix:", "127.0.0.1:80:80", "127.0.0.1:0"}) {
    CAPTURE(address);
    const Error error = connection_failure(address, 60s);
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(error.operation == "connect");
    CHECK(error.decided_by == "client");
    CHECK(error.elapsed < 30s);
  }
}

TEST_CASE("a host without an address is told at the deadline, by name") {
  const Error error = connection_failure("no-such-host.invalid:29400", 300ms);
  CHECK(error.code == ErrorCode::unavailable);
  CHECK(error.where.find("no-such-host.invalid") != std::string::npos);
  CHECK(error.elapsed < 10s);
}

TEST_CASE("a closed port is told at the deadline, with the address") {
  const std::string address = closed_port();
  const Error error = connection_failure(address, 300ms);
  CHECK(error.code == ErrorCode::unavailable);
  CHECK(error.where.find(address) != std::string::npos);
  CHECK(error.elapsed >= 250ms);
  CHECK(error.elapsed < 10s);
}

TEST_CASE("a server that starts later than its client is found") {
  const std::string address = closed_port();
  std::optional<Server> server;
  std::thread starter([&] {
    ServerOptions options;
    options.listen = {address};
    server = start_server(options);
  });
  auto store = must(Store::connect(address, {}, 10s));
  must(store.set("key", "value"));
  starter.join();
}

TEST_CASE("what answers and is no Muster server is told at once") {
  const std::string http = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
  Stranger web(http + std::string(400, ' '));
  const Error error = connection_failure(web.address(), 60s);
  CHECK(error.code == ErrorCode::protocol_error);
  CHECK(error.elapsed < 30s);
  Stranger ssh("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n");
  CHECK(connection_failure(ssh.address(), 10s).code == ErrorCode::protocol_error);
}

TEST_CASE("what accepts and stays mute is told at the deadline") {
  Stranger mute("");
  const Error error = connection_failure(mute.address(), 500ms);
  CHECK(error.code == ErrorCode::unavailable);
  CHECK(error.elapsed < 10s);
}

TEST_CASE("ranks and sizes that cannot be are refused") {
  auto server = start_server();
  auto store = connect(server);
  for (const auto& place : {std::pair{-1, 2}, {2, 2}, {0, 0}, {0, -1}}) {
    const auto rank = place.first;
    const auto size = place.second;
    CAPTURE(rank);
    CAPTURE(size);
    const auto group = StatelessProcessGroup::create(store, "g", rank, size, patience());
    CHECK(must_fail(group).code == ErrorCode::invalid_argument);
  }
  const Error size = must_fail(StatelessProcessGroup::create(store, "g", 0, 16385, patience()));
  CHECK(size.code == ErrorCode::too_large);
  CHECK(size.limit == 16384);
  CHECK(must_fail(StatelessProcessGroup::create(store, "", 0, 1, patience())).code ==
        ErrorCode::invalid_argument);
}

TEST_CASE("a rank with another world_size is told what the others have") {
  auto server = start_server();
  auto first = connect(server);
  auto second = connect(server);
  std::thread waiting([&] {
    const auto group = StatelessProcessGroup::create(first, "g", 0, 2, patience(2s));
    const Error error = must_fail(group);
    CHECK(error.code == ErrorCode::timed_out);
    CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
  });
  await([&] { return held_count(second, "groups") == 1; });
  const Error error = must_fail(StatelessProcessGroup::create(second, "g", 1, 3, patience()));
  CHECK(error.code == ErrorCode::group_mismatch);
  CHECK(error.expected == 2);
  CHECK(error.actual == 3);
  REQUIRE(error.ranks.size() == 1);
  CHECK(error.ranks[0].rank == 0);
  waiting.join();
}

TEST_CASE("keys and values over their limits are refused, and the store goes on") {
  ServerOptions options;
  options.value_bytes_max = 1000;
  auto server = start_server(options);
  auto store = connect(server);
  const Error key = must_fail(store.set(std::string(2000, 'k'), ""));
  CHECK(key.code == ErrorCode::too_large);
  CHECK(key.actual == 2000);
  CHECK(key.limit == 1024);
  const Error value = must_fail(store.set("k", std::string(1001, 'v')));
  CHECK(value.code == ErrorCode::too_large);
  CHECK(value.actual == 1001);
  CHECK(value.limit == 1000);
  CHECK(must_fail(store.set("", "v")).code == ErrorCode::invalid_argument);
  CHECK(must_fail(store.get("k", -5s)).code == ErrorCode::invalid_argument);
  must(store.set("k", std::string(1000, 'v')));
  CHECK(must(store.get("k")).size() == 1000);
}

TEST_CASE("arguments of a group's calls that cannot be are refused, and the group goes on") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    for (const int peer : {-1, 2}) {
      CHECK(must_fail(group.send_obj<RawCodec>(Rank{peer}, std::string())).code ==
            ErrorCode::invalid_argument);
      CHECK(must_fail(group.recv_obj<std::string, RawCodec>(Rank{peer})).code ==
            ErrorCode::invalid_argument);
      CHECK(must_fail(group.broadcast_obj<RawCodec>(std::string(), Rank{peer})).code ==
            ErrorCode::invalid_argument);
    }
    CHECK(must_fail(group.barrier(0s)).code == ErrorCode::invalid_argument);
    const std::vector<std::string> one_too_few(1);
    if (rank == 0) {
      CHECK(must_fail(group.scatter_obj<RawCodec>(one_too_few, Rank{0})).code ==
            ErrorCode::invalid_argument);
    }
    must(group.barrier());
  });
}

TEST_CASE("different collectives in one round are told to all ranks") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 3);
    const Error error = rank == 1 ? must_fail(group.all_gather_obj<RawCodec>(std::string("x"), 60s))
                                  : must_fail(group.barrier(60s));
    CHECK(error.code == ErrorCode::collective_mismatch);
    CHECK(error.elapsed < 30s);
    must(group.barrier());
  });
}

TEST_CASE("different codecs at sender and receiver are told, and nothing is consumed") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    if (rank == 0) {
      must(group.send_obj<JsonCodec>(Rank{1}, 7));
    } else {
      const Error error = must_fail(group.recv_obj<std::string, RawCodec>(Rank{0}));
      CHECK(error.code == ErrorCode::codec_mismatch);
      CHECK(must(group.recv_obj<int, JsonCodec>(Rank{0})) == 7);
    }
    must(group.barrier());
  });
}

}  // namespace muster::test
