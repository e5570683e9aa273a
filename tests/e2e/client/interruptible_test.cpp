// Blocking calls that end because their own thread has something to look at.

#include "muster/interruptible.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "muster/codec_cereal.h"
#include "support/ranks.h"

namespace muster::test {
namespace {

/// What a thread looks at; counts how often.
struct Look {
  std::atomic<bool> is_wanted = false;
  int count = 0;

  static bool take(void* argument) noexcept {
    auto& look = *static_cast<Look*>(argument);
    ++look.count;
    return look.is_wanted;
  }
};

}  // namespace

TEST_CASE("a blocking call of a thread that looks meanwhile is cancelled when it is to be") {
  auto server = start_server();
  auto store = connect(server);
  auto other = connect(server);
  Look look;
  Error error;
  {
    const Interruptible interruptible(&Look::take, &look, 5ms);
    std::thread interrupter([&] {
      await([&] { return held_count(other, "waits") == 1; });
      look.is_wanted = true;
    });
    error = must_fail(store.take("k", 60s));
    interrupter.join();
  }
  CHECK(error.code == ErrorCode::cancelled);
  CHECK(error.operation == "take");
  CHECK(error.happened == Happened::no);
  CHECK(look.count > 0);
  await([&] { return held_count(other, "waits") == 0; });
  must(store.set("k", "v"));
  CHECK(must(store.get("k")) == "v");
}

TEST_CASE("who may be interrupted and is not waits as ever, until the deadline, too") {
  auto server = start_server();
  auto store = connect(server);
  Look look;
  const Interruptible interruptible(&Look::take, &look, 5ms);
  CHECK(must_fail(store.get("k", 60ms)).code == ErrorCode::timed_out);
  CHECK(look.count > 2);
  std::thread setter([&] {
    await([&] { return held_count(store, "waits") == 1; });
    must(store.set("k", "v"));
  });
  CHECK(must(store.get("k", 20s)) == "v");
  setter.join();
}

TEST_CASE("an interrupted collective is cancelled for all, and the group goes on") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    if (rank == 0) {
      Look look;
      look.is_wanted = true;
      std::optional<Interruptible> interruptible(std::in_place, &Look::take, &look, 10ms);
      const Error error = must_fail(group.barrier(20s));
      interruptible.reset();
      CHECK(error.code == ErrorCode::cancelled);
      CHECK(error.rank_ranges == std::vector<RankRange>{{0, 0}});
      CHECK(look.count == 1);
      must(store.set("cancelled", ""));
    } else {
      must(store.get("cancelled"));
      CHECK(must_fail(group.barrier(20s)).code == ErrorCode::cancelled);
    }
    CHECK(must(group.all_gather_obj(rank)) == std::vector<int>{0, 1});
  });
}

TEST_CASE("a connect that waits for its server is interrupted, and only that of this thread") {
  Look look;
  look.is_wanted = true;
  {
    const Interruptible outer(&Look::take, &look, 5ms);
    const Interruptible inner([](void*) noexcept { return false; }, nullptr, 5ms);
    CHECK(Interruptible::current() == &inner);
    std::thread([] { CHECK(Interruptible::current() == nullptr); }).join();
  }
  CHECK(Interruptible::current() == nullptr);
  const Interruptible interruptible(&Look::take, &look, 5ms);
  const auto begun = std::chrono::steady_clock::now();
  const Error error = must_fail(Store::connect("unix:@muster-nobody-is-here", {}, 60s));
  CHECK(error.code == ErrorCode::cancelled);
  CHECK(error.operation == "connect");
  CHECK(std::chrono::steady_clock::now() - begun < 20s);
}

}  // namespace muster::test
