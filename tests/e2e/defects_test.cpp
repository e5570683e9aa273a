// The defects of earlier systems of this kind, one test each.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

#include "muster/codec_cereal.h"
#include "support/ranks.h"

namespace muster::test {
namespace {

std::string number(int n) { return std::to_string(n); }

bool can_connect(const char* address, std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  ::inet_pton(AF_INET, address, &to.sin_addr);
  const bool connected = ::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  ::close(fd);
  return connected;
}

}  // namespace

TEST_CASE("defect 1: two senders to one receiver, both are delivered") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 3);
    if (rank < 2) {
      must(group.send_obj(2, "from " + number(rank)));
    } else {
      CHECK(must(group.recv_obj<std::string>(0)) == "from 0");
      CHECK(must(group.recv_obj<std::string>(1)) == "from 1");
    }
    must(group.barrier());
  });
}

TEST_CASE("defect 2: a barrier ends at its own timeout and names all who are missing") {
  auto server = start_server();
  run_ranks(4, [&](int rank) {
    StoreOptions options;
    options.label = "pod-" + number(rank);
    auto store = connect(server, options);
    auto group = join(store, "g", rank, 4);
    if (rank >= 2) {
      must(store.wait({"done/0", "done/1"}));  // these two never come
      return;
    }
    const auto began = std::chrono::steady_clock::now();
    const Error error = must_fail(group.barrier(rank == 0 ? 1s : 60s));
    const auto took = std::chrono::steady_clock::now() - began;
    CHECK(error.code == ErrorCode::timed_out);
    CHECK(error.rank_ranges == std::vector<RankRange>{{2, 3}});
    REQUIRE(error.ranks.size() == 2);
    CHECK(error.ranks[0].process.label == "pod-2");
    CHECK(error.ranks[1].process.pid == static_cast<std::uint32_t>(::getpid()));
    CHECK(error.decided_by_rank == 0);  // the earlier of the two deadlines decides
    CHECK(took < 1s + 500ms + 500ms);
    must(store.set("done/" + number(rank), ""));
  });
}

TEST_CASE("defect 3: barriers leave nothing behind") {
  auto server = start_server();
  auto observer = connect(server);
  run_ranks(4, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 4);
    for (int i = 0; i < 500; ++i) must(group.barrier());
    must(group.leave());
  });
  CHECK(held_count(observer, "keys") == 0);
  await([&] { return held_count(observer, "rounds") == 0; });
  await([&] { return held_count(observer, "groups") == 0; });
}

TEST_CASE("defect 4: an object that expired is told at once, and the next one comes") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    GroupOptions options = patience();
    options.data_expiration = 100ms;
    auto group = join(store, "g", rank, 2, options);
    if (rank == 0) {
      must(group.send_obj(1, std::string("first")));
      await([&] { return held_count(store, "objects") == 0; });
      must(store.set("expired", ""));
      must(store.wait({"asked"}));
      must(group.send_obj(1, std::string("second")));
    } else {
      must(store.wait({"expired"}));
      const auto began = std::chrono::steady_clock::now();
      const Error error = must_fail(group.recv_obj<std::string>(0, 0, 10s));
      CHECK(error.code == ErrorCode::expired);
      CHECK(std::chrono::steady_clock::now() - began < 5s);
      must(store.set("asked", ""));
      CHECK(must(group.recv_obj<std::string>(0, 0, 10s)) == "second");
    }
    must(group.barrier());
  });
}

TEST_CASE("defect 5: a restarted rank gets no object of the earlier run") {
  auto server = start_server();
  auto store_0 = connect(server);
  std::optional<StatelessProcessGroup> group_0;
  std::optional<StatelessProcessGroup> group_1;
  auto store_1 = connect(server);
  run_ranks(2, [&](int rank) {
    (rank == 0 ? group_0 : group_1) = join(rank == 0 ? store_0 : store_1, "g", rank, 2);
  });
  for (int i = 0; i < 4; ++i) must(group_0->send_obj(1, "old " + number(i)));
  CHECK(must(group_1->recv_obj<std::string>(0)) == "old 0");
  store_1.close();  // the run of rank 1 ends; three objects are left

  std::thread restarted([&] {
    auto store = connect(server);
    auto group = join(store, "g", 1, 2);
    CHECK(must(group.recv_obj<std::string>(0)) == "new 0");
  });
  RegroupOptions same_size;
  same_size.new_size = 2;
  auto next = must(group_0->regroup(same_size, 20s));
  must(next.send_obj(1, std::string("new 0")));
  restarted.join();
}

TEST_CASE("defect 5: of two processes with one rank the second is refused, the first goes on") {
  auto server = start_server();
  std::vector<Store> stores;
  for (int i = 0; i < 3; ++i) stores.push_back(connect(server));
  std::vector<std::optional<StatelessProcessGroup>> groups(2);
  run_ranks(2, [&](int rank) {
    groups[static_cast<std::size_t>(rank)] =
        join(stores[static_cast<std::size_t>(rank)], "g", rank, 2);
  });
  const Error error = must_fail(StatelessProcessGroup::create(stores[2], "g", 1, 2, patience()));
  CHECK(error.code == ErrorCode::rank_in_use);
  REQUIRE(error.ranks.size() == 1);
  CHECK(error.ranks[0].process.pid == static_cast<std::uint32_t>(::getpid()));
  run_ranks(2, [&](int rank) { must(groups[static_cast<std::size_t>(rank)]->barrier()); });
}

TEST_CASE("defect 6: after a time-out the next receive gets the object that was asked for") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    if (rank == 1) {
      for (int i = 0; i < 3; ++i) {
        CHECK(must_fail(group.recv_obj<int>(0, 0, 50ms)).code == ErrorCode::timed_out);
      }
      must(store.set("timed out", ""));
      for (int i = 0; i < 5; ++i) CHECK(must(group.recv_obj<int>(0)) == i);
    } else {
      must(store.wait({"timed out"}));
      for (int i = 0; i < 5; ++i) must(group.send_obj(1, i));
    }
    must(group.barrier());
  });
}

TEST_CASE("defect 8: a get that waits blocks no other call of the same store") {
  auto server = start_server();
  auto store = connect(server);
  std::atomic<bool> got{false};
  std::thread waiter([&] {
    CHECK(must(store.get("late")) == "here");
    got = true;
  });
  for (int i = 0; i < 100; ++i) must(store.set("other", number(i)));
  CHECK(!got);
  must(store.set("late", "here"));
  waiter.join();
}

TEST_CASE("defect 9: a server on 127.0.0.1 listens nowhere else") {
  auto server = start_server();
  CHECK(can_connect("127.0.0.1", server.port()));
  CHECK(!can_connect("127.0.0.2", server.port()));
}

TEST_CASE("defect 10: a store reconnects to a restarted server and says that it was restarted") {
  auto server = std::make_optional(start_server());
  const std::string address = server->addresses().front();
  const auto old_incarnation = server->incarnation();
  auto store = connect(address);
  must(store.set("key", "old"));
  server.reset();
  CHECK_FALSE(store.set("key", "lost", {}, 200ms).has_value());

  ServerOptions same_port;
  same_port.listen = {address};
  server = start_server(same_port);
  const auto listening = std::chrono::steady_clock::now();
  await([&] {
    const auto value = store.get("key", 0s);
    REQUIRE_FALSE(value.has_value());  // never a value of the old server
    return value.error().code == ErrorCode::server_restarted;
  });
  CHECK(std::chrono::steady_clock::now() - listening < 1500ms);
  const Error error = must_fail(store.get("key", 0s));
  CHECK(error.expected == old_incarnation);
  CHECK(error.actual == server->incarnation());
  must(store.reopen(10s));
  CHECK(must_fail(store.get("key", 0s)).code == ErrorCode::not_found);
  must(store.set("key", "new"));
}

TEST_CASE("defect 11: eight hostile bytes are refused without allocating what they ask for") {
  const std::string hostile(8, '\xff');
  CHECK(must_fail(CerealCodec::decode<std::vector<std::string>>(hostile)).code ==
        ErrorCode::codec_failure);
}

}  // namespace muster::test
