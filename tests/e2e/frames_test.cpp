// What a call costs on the wire, counted by a proxy between the ranks and the server.

#include "muster/codec_raw.h"
#include "support/frame_proxy.h"
#include "support/ranks.h"
#include "wire/frame.h"

namespace muster::test {
namespace {

constexpr std::uint64_t calls_of_each = 20;

std::uint64_t of(const std::array<std::uint64_t, 16>& counts, wire::FrameType type) {
  return counts[static_cast<std::size_t>(type)];
}

/// The frames that `calls_of_each` calls of every rank cost in all, heartbeats aside.
struct Cost {
  std::uint64_t requests = 0;
  std::uint64_t replies = 0;
  std::uint64_t acknowledges = 0;
};

Cost cost_of(int world_size, const std::function<void(StatelessProcessGroup& group)>& call) {
  auto server = start_server();
  FrameProxy proxy(server.addresses().front());
  std::vector<StatelessProcessGroup> groups;
  std::vector<Store> stores;
  for (int rank = 0; rank < world_size; ++rank) stores.push_back(connect(proxy.address()));
  std::vector<std::optional<StatelessProcessGroup>> slots(stores.size());
  run_ranks(world_size, [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    slots[index] = join(stores[index], "g", rank, world_size);
  });
  const FrameCounts before = proxy.counts();
  run_ranks(world_size, [&](int rank) {
    for (std::uint64_t i = 0; i < calls_of_each; ++i) call(*slots[static_cast<std::size_t>(rank)]);
  });
  Cost cost;
  // One-way frames may still be on their way; what is asked for is in when a later answer is.
  for (Store& store : stores) must(store.exists("none"));
  const FrameCounts after = proxy.counts();
  cost.requests = of(after.up, wire::FrameType::request) - of(before.up, wire::FrameType::request) -
                  stores.size();
  cost.replies = of(after.down, wire::FrameType::reply) - of(before.down, wire::FrameType::reply) -
                 stores.size();
  cost.acknowledges =
      of(after.up, wire::FrameType::acknowledge) - of(before.up, wire::FrameType::acknowledge);
  return cost;
}

}  // namespace

TEST_CASE("defect 12: a barrier costs each rank one round trip and one confirmation, at any size") {
  for (const std::uint64_t ranks : {2U, 8U, 24U}) {
    const Cost cost = cost_of(static_cast<int>(ranks),
                              [](StatelessProcessGroup& group) { must(group.barrier(20s)); });
    CHECK(cost.requests == calls_of_each * ranks);
    CHECK(cost.replies == calls_of_each * ranks);
    CHECK(cost.acknowledges <= calls_of_each * ranks);
    CHECK(cost.acknowledges >= calls_of_each * (ranks - 1));
  }
}

TEST_CASE("an all_gather costs each rank one round trip") {
  const Cost cost = cost_of(8, [](StatelessProcessGroup& group) {
    const auto all = must(group.all_gather_obj<RawCodec>(std::to_string(group.rank()), 20s));
    REQUIRE(all.size() == 8);
    REQUIRE(all[7] == "7");
  });
  CHECK(cost.requests == calls_of_each * 8);
  CHECK(cost.replies == calls_of_each * 8);
  CHECK(cost.acknowledges == 0);
}

TEST_CASE("a broadcast costs each rank one round trip") {
  const Cost cost = cost_of(8, [](StatelessProcessGroup& group) {
    REQUIRE(must(group.broadcast_obj<RawCodec>(std::string("x"), Rank{0}, 20s)) == "x");
  });
  CHECK(cost.requests == calls_of_each * 8);
  CHECK(cost.replies == calls_of_each * 8);
  CHECK(cost.acknowledges == 0);
}

TEST_CASE("what can never be right is refused before it costs a round trip") {
  ServerOptions options;
  options.value_bytes_max = 1000;
  auto server = start_server(std::move(options));
  FrameProxy proxy(server.addresses().front());
  auto store = connect(proxy.address());
  must(store.set("k", "v"));
  const std::uint64_t before = of(proxy.counts().up, wire::FrameType::request);
  const auto too_large = store.set("k", std::string(1001, 'x'));
  REQUIRE_FALSE(too_large.has_value());
  CHECK(too_large.error().code == ErrorCode::too_large);
  SetOptions at_once;
  at_once.ttl = 0s;
  const auto no_life = store.set("k", "v", at_once);
  REQUIRE_FALSE(no_life.has_value());
  CHECK(no_life.error().code == ErrorCode::invalid_argument);
  must(store.exists("k"));
  CHECK(of(proxy.counts().up, wire::FrameType::request) == before + 1);
}

TEST_CASE("a session that was cut off goes on where it was and repeats nothing") {
  auto server = start_disturbed_server();
  FrameProxy proxy(server.addresses().front());
  auto store = connect(proxy.address());
  for (int i = 1; i <= 20; ++i) {
    if (i % 3 == 0) proxy.cut();
    CHECK(must(store.add("n", 1)) == i);
  }
}

// Its end would be that of the process to the server, and the grace is short.
TEST_CASE("a connection that is only silent is not ended until the session stands again") {
  ServerOptions options;
  options.heartbeat = 50ms;
  options.session_timeout = 5s;
  options.grace = 0ms;
  auto server = start_disturbed_server(std::move(options));
  FrameProxy proxy(server.addresses().front());
  auto store = connect(proxy.address());
  must(store.set("k", "v"));
  proxy.pause();
  await([&] { return proxy.connections_count() == 2; });
  CHECK(proxy.ended_count() == 0);
  proxy.resume();
  CHECK(must(store.get("k")) == "v");
  await([&] { return proxy.connections_count() == 1; });
}

}  // namespace muster::test
