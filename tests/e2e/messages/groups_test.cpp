#include "e2e/messages/documented.h"
#include "muster/codec_json.h"
#include "muster/codec_raw.h"
#include "support/ranks.h"
#include "support/raw_client.h"

// Errors of groups have the fields that docs/errors.md says.

namespace muster::test {
namespace {

Error join_error(const Store& store, int rank, int world_size, Duration timeout = 200ms) {
  return must_fail(StatelessProcessGroup::create(store, "g", rank, world_size, patience(timeout)));
}

TEST_CASE("errors of joining have the documented fields") {
  auto server = start_server();
  std::vector<Store> stores;
  for (int i = 0; i < 3; ++i) stores.push_back(connect(server));
  check(join_error(stores[0], 0, 2), ErrorCode::timed_out);
  check(join_error(stores[0], 0, 100'000), ErrorCode::too_large);
  std::vector<std::optional<StatelessProcessGroup>> groups(2);
  std::thread first([&] { groups[0] = join(stores[0], "g", 0, 2); });
  await([&] { return held_count(stores[2], "waits") == 1; });
  check(join_error(stores[1], 1, 3), ErrorCode::group_mismatch);
  groups[1] = join(stores[1], "g", 1, 2);
  first.join();
  check(join_error(stores[2], 1, 2), ErrorCode::rank_in_use);
  check(join_error(stores[2], 2, 3), ErrorCode::group_closed);
  check(join_error(stores[1], 1, 2), ErrorCode::busy);
}

TEST_CASE("errors of rounds have the documented fields") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    if (rank == 0) {
      check(must_fail(group.barrier(100ms)), ErrorCode::timed_out);
      must(store.set("timed out", ""));
    } else {
      must(store.wait({"timed out"}));
      check(must_fail(group.barrier()), ErrorCode::timed_out);
    }
    const Error mismatch = rank == 0 ? must_fail(group.barrier(20s))
                                     : must_fail(group.all_gather_obj<RawCodec>(std::string()));
    check(mismatch, ErrorCode::collective_mismatch);
    if (rank == 0) {
      std::promise<Error> cancelled;
      group.barrier_async(20s, [&](auto passed) { cancelled.set_value(must_fail(passed)); });
      group.cancel();
      check(cancelled.get_future().get(), ErrorCode::cancelled);
      must(store.set("cancelled", ""));
    } else {
      must(store.get("cancelled"));
      check(must_fail(group.barrier()), ErrorCode::cancelled);
    }
    must(group.barrier());
  });
}

TEST_CASE("errors of objects have the documented fields") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    if (rank == 0) {
      must(group.send_obj<JsonCodec>(Rank{1}, 7));
      must(group.send_obj<JsonCodec>(Rank{1}, "text"));
      must(group.send_obj<JsonCodec>(Rank{1}, 1));
      must(group.send_obj<JsonCodec>(Rank{1}, 1, Tag{5}));
      must(group.barrier());
      must(group.barrier());
      must(group.expire_data(0s));
      must(group.barrier());
    } else {
      must(group.barrier());
      const Error codec = must_fail(group.recv_obj<std::string, RawCodec>(Rank{0}));
      check(codec, ErrorCode::codec_mismatch);
      CHECK(must(group.recv_obj<int, JsonCodec>(Rank{0})) == 7);
      const Error failure = must_fail(group.recv_obj<int, JsonCodec>(Rank{0}));
      check(failure, ErrorCode::codec_failure);
      CHECK(must(group.recv_obj<std::string, JsonCodec>(Rank{0})) == "text");
      must(group.barrier());
      must(group.barrier());
      const Error expired = must_fail(group.recv_obj<int, JsonCodec>(Rank{0}));
      check(expired, ErrorCode::expired);
      CHECK(expired.actual == 2);
      check(must_fail(group.recv_obj<int, JsonCodec>(Rank{0}, Tag{9}, 0s)), ErrorCode::not_found);
    }
    must(group.barrier());
  });
}

TEST_CASE("errors after ranks have left, and of an old epoch, have the documented fields") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    if (rank == 1) return must(group.leave());
    check(must_fail(group.barrier()), ErrorCode::rank_left);
    auto next = must(group.regroup());
    check(must_fail(group.barrier()), ErrorCode::stale_epoch);
    must(next.barrier());
  });
}

TEST_CASE("errors after a loss have the documented fields") {
  ServerOptions options;
  options.grace = 100ms;
  auto server = start_disturbed_server(options);
  auto store = connect(server);
  auto rank_1 = std::make_optional<RawClient>(server.addresses().front());
  wire::ClientHello hello;
  hello.process = {{}, "b7", 4711, "pod-1"};
  hello.process.id.bytes[0] = 1;
  REQUIRE(rank_1->say_hello(hello).status == 0);
  const GroupOptions group_options = patience();
  rank_1->send(rank_1->request(wire::Join{"g", 1, 2, group_options.data_expiration, false, ""}));
  auto group = join(store, "g", 0, 2, group_options);
  rank_1.reset();
  const Error error = must_fail(group.barrier());
  check(error, ErrorCode::rank_lost);
  CHECK(error.cause == LossCause::closed);
  REQUIRE(error.ranks.size() == 1);
  CHECK(error.ranks[0].process.label == "pod-1");
}

}  // namespace
}  // namespace muster::test
