// The cancelling of one call, of all kinds, and what it does not touch.

#include <atomic>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "muster/call.h"
#include "support/frame_proxy.h"
#include "support/ranks.h"

namespace muster::test {
namespace {

using Group = StatelessProcessGroup;

/// What a call came to, for a handler that runs exactly once.
template <class T>
class Ended {
 public:
  Handler<T> handler() {
    return [this](Result<T> result) { promise_.set_value(std::move(result)); };
  }
  Result<T> result() {
    auto future = promise_.get_future();
    REQUIRE(future.wait_for(20s) == std::future_status::ready);
    return future.get();
  }
  ErrorCode code() { return must_fail(result()).code; }

 private:
  std::promise<Result<T>> promise_;
};

}  // namespace

TEST_CASE("a cancelled get ends with `cancelled`, and the other calls of its store go on") {
  auto server = start_server();
  auto store = connect(server);
  Ended<std::string> cancelled, other;
  Call call = store.get_async("k", 60s, cancelled.handler());
  store.get_async("k", 60s, other.handler());
  await([&] { return held_count(store, "waits") == 2; });
  call.cancel();
  const Error error = must_fail(cancelled.result());
  CHECK(error.code == ErrorCode::cancelled);
  CHECK(error.operation == "get");
  CHECK(error.where == store.address());
  CHECK(error.decided_by == "client");
  await([&] { return held_count(store, "waits") == 1; });  // the server waits for it no more
  must(store.set("k", "v"));
  CHECK(must(other.result()) == "v");
}

TEST_CASE("a cancelled take that waits has taken nothing, and surely does not") {
  auto server = start_server();
  auto store = connect(server);
  for (const bool of_store : {false, true}) {
    Ended<std::string> ended;
    Call call = store.take_async("k", 60s, ended.handler());
    await([&] { return held_count(store, "waits") == 1; });
    if (of_store) {
      store.cancel();
    } else {
      call.cancel();
    }
    const Error error = must_fail(ended.result());
    CHECK(error.code == ErrorCode::cancelled);
    CHECK(error.operation == "take");
    CHECK(error.happened == Happened::no);
    must(store.set("k", "v"));
    CHECK(must(store.take("k", 0s)) == "v");
  }
}

TEST_CASE("a take whose value and cancelling meet gives the value, or leaves it there") {
  auto server = start_server();
  auto store = connect(server);
  auto other = connect(server);
  int taken = 0;
  constexpr int rounds = 300;
  for (int round = 0; round < rounds; ++round) {
    const std::string key = "k" + std::to_string(round);
    Ended<std::string> ended;
    std::promise<void> set;
    Call call = store.take_async(key, 60s, ended.handler());
    other.set_async(key, "v", {}, 20s, [&](Result<bool>) { set.set_value(); });
    call.cancel();
    const auto result = ended.result();
    set.get_future().wait();
    if (result) ++taken;
    if (!result) CHECK(result.error().happened == Happened::no);
    CHECK(must(store.exists(key)) == !result.has_value());
  }
  CHECK(held_count(store, "keys") == static_cast<std::uint64_t>(rounds - taken));
}

TEST_CASE("a cancelled barrier ends for all ranks, who are told by whom, and the group goes on") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    auto store = connect(server);
    Group group = join(store, "g", rank, 3);
    if (rank == 1) {
      Ended<BarrierResult> ended;
      Call call = group.barrier_async(60s, ended.handler());
      await([&] { return held_count(store, "waits") >= 2; });  // of rank 0, and this one
      call.cancel();
      CHECK(ended.code() == ErrorCode::cancelled);
      must(store.set("cancelled", ""));
    } else {
      if (rank == 2) must(store.get("cancelled"));  // else it would be passed
      const Error error = must_fail(group.barrier(60s));
      CHECK(error.code == ErrorCode::cancelled);
      REQUIRE(error.ranks.size() == 1);
      CHECK(error.ranks[0].rank == 1);
    }
    must(group.barrier());
  });
}

TEST_CASE("a cancelled regroup ends for all who called it, and the next one forms") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    Group group = join(store, "g", rank, 2);
    if (rank == 0) {
      Ended<Group> ended;
      Call call = group.regroup_async({}, 60s, ended.handler());
      call.cancel();
      CHECK(ended.code() == ErrorCode::cancelled);
      must(store.set("cancelled", ""));
    } else {
      must(store.get("cancelled"));
      const Error error = must_fail(group.regroup({}, 20s));
      CHECK(error.code == ErrorCode::cancelled);
      REQUIRE(error.ranks.size() == 1);
      CHECK(error.ranks[0].rank == 0);
    }
    CHECK(must(group.regroup({}, 20s)).world_size() == 2);
  });
}

TEST_CASE("a cancelled receive takes no object") {
  auto server = start_server();
  auto store = connect(server);
  Group group = join(store, "g", 0, 1);
  Ended<ReceivedBytes> ended;
  Call call = group.recv_bytes_async(Rank{0}, 300, Tag(), 60s, ended.handler());
  call.cancel();
  CHECK(ended.code() == ErrorCode::cancelled);
  must(group.send_bytes(Rank{0}, 300, "first"));
  CHECK(must(group.recv_bytes(Rank{0}, 300)).bytes == "first");
}

TEST_CASE("a join can be cancelled, and called again") {
  auto server = start_server();
  auto store = connect(server);
  Ended<Group> ended;
  Call call = Group::create_async(store, "g", 0, 2, patience(60s), ended.handler());
  await([&] { return held_count(store, "waits") == 1; });
  call.cancel();
  CHECK(ended.code() == ErrorCode::cancelled);
  run_ranks(2, [&](int rank) {
    auto own = connect(server);
    CHECK(join(rank == 0 ? store : own, "g", rank, 2).world_size() == 2);
  });
}

TEST_CASE("a recover that waits for its round can be cancelled") {
  auto server = start_disturbed_server();
  FrameProxy proxy(server.addresses().front());
  run_ranks(2, [&](int rank) {
    auto store = connect(rank == 0 ? proxy.address() : server.addresses().front());
    Group group = join(store, "g", rank, 2);
    if (rank == 0) {
      proxy.pause();  // its call cannot be answered, so it is in doubt
      Ended<std::string> lost;
      Call call = group.broadcast_bytes_async("mine", 300, Rank{1}, 60s, lost.handler());
      call.cancel();
      CHECK(lost.code() == ErrorCode::outcome_unknown);
      Ended<RecoveredRound> ended;
      Call recovering = group.recover_async(60s, ended.handler());
      recovering.cancel();
      CHECK(ended.code() == ErrorCode::cancelled);
      proxy.resume();
      CHECK(must(group.recover(20s)).round == 1);
      must(store.set("recovered", ""));
    } else {
      must(store.get("recovered", 60s));
    }
  });
}

TEST_CASE("connecting can be cancelled, whoever answers there") {
  auto server = start_disturbed_server();
  FrameProxy proxy(server.addresses().front());
  proxy.pause();
  Ended<Store> silent, nobody;
  Call call = Store::connect_async(proxy.address(), {}, 60s, silent.handler());
  call.cancel();
  const Error error = must_fail(silent.result());
  CHECK(error.code == ErrorCode::cancelled);
  CHECK(error.operation == "connect");
  CHECK(error.where == proxy.address());

  call = Store::connect_async("unix:/nobody/listens/here", {}, 60s, nobody.handler());
  call.cancel();
  CHECK(nobody.code() == ErrorCode::cancelled);
}

TEST_CASE("reopening ends when it, or all of its store, is cancelled") {
  auto server = std::make_unique<Server>(start_disturbed_server());
  FrameProxy proxy(server->addresses().front());
  ServerOptions same;
  same.listen = server->addresses();
  std::promise<void> over;
  StoreOptions options;
  options.on_session_end = [&](const Error&) { over.set_value(); };
  auto store = connect(proxy.address(), options);
  server.reset();
  server = std::make_unique<Server>(start_disturbed_server(same));
  over.get_future().wait();
  proxy.pause();
  Ended<void> one, all, later;
  Call call = store.reopen_async(60s, one.handler());
  store.reopen_async(60s, all.handler());
  call.cancel();
  CHECK(one.code() == ErrorCode::cancelled);
  store.cancel();
  CHECK(all.code() == ErrorCode::cancelled);
  store.reopen_async(60s, later.handler());
  proxy.resume();
  must(later.result());
  must(store.set("k", "v"));
}

TEST_CASE("there is nothing to cancel in no call, in one that is over, or when its store is gone") {
  auto server = start_server();
  Call none;
  none.cancel();
  Call of_store;
  {
    auto store = connect(server);
    Ended<bool> set;
    Ended<std::string> waiting;
    Call over = store.set_async("k", "v", {}, 10s, set.handler());
    CHECK(must(set.result()));
    over.cancel();
    over.cancel();
    Call refused = store.set_async("", "v", {}, 10s, [](Result<bool>) {});
    refused.cancel();
    of_store = store.get_async("never", 60s, waiting.handler());
    const Call copy = of_store;
    of_store = copy;
    CHECK(must(store.get("k")) == "v");
    store.close();
    CHECK(waiting.code() == ErrorCode::closed);
    of_store.cancel();
    Ended<bool> moved_from;
    Store other = std::move(store);
    Call refused_too = store.set_async("k", "v", {}, 10s, moved_from.handler());
    CHECK(moved_from.code() == ErrorCode::closed);
    refused_too.cancel();
  }
  of_store.cancel();
}

TEST_CASE("a call is cancelled from the handler of another, wherever handlers run") {
  auto server = start_server();
  for (const auto place : {HandlerPlace::handler_thread, HandlerPlace::io_thread}) {
    StoreOptions options;
    options.handlers = place;
    auto store = connect(server, options);
    Ended<std::string> waiting;
    std::atomic<bool> is_in_handler{false};
    std::atomic<bool> ended_within{false};
    Call call = store.get_async("never", 60s, [&, handler = waiting.handler()](auto result) {
      ended_within = is_in_handler.load();
      handler(std::move(result));
    });
    store.set_async("k", "v", {}, 10s, [&](Result<bool>) {
      is_in_handler = true;
      call.cancel();
      is_in_handler = false;
    });
    CHECK(waiting.code() == ErrorCode::cancelled);
    CHECK(!ended_within);
  }
}

TEST_CASE("a call whose answer and cancelling meet has exactly one outcome") {
  auto server = start_server();
  auto store = connect(server);
  constexpr int calls = 2000;
  std::atomic<int> ended{0};
  std::atomic<int> answered{0};
  std::vector<std::atomic<int>> outcomes(calls);
  std::vector<Call> begun(calls);
  std::atomic<int> begun_count{0};
  std::thread cancels([&] {
    for (int index = 0; index < calls; ++index) {
      await([&] { return begun_count > index; });
      begun[static_cast<std::size_t>(index)].cancel();
    }
  });
  for (int index = 0; index < calls; ++index) {
    const auto at = static_cast<std::size_t>(index);
    begun[at] = store.add_async("counter", 1, 20s, [&, at](Result<std::int64_t> result) {
      ++outcomes[at];
      if (result) ++answered;
      const bool is_one = result || result.error().code == ErrorCode::cancelled;
      if (is_one) ++ended;
    });
    ++begun_count;
  }
  cancels.join();
  await([&] { return ended == calls; });
  const std::int64_t applied = must(store.add("counter", 0));
  CHECK(applied >= answered);  // cancelled ones may have been applied, too
  CHECK(applied <= calls);
  for (const auto& count : outcomes) CHECK(count.load() == 1);
}

}  // namespace muster::test
