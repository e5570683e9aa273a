#include <future>
#include <memory>
#include <mutex>
#include <vector>

#include "muster/codec_cereal.h"
#include "muster/inspect.h"
#include "support/ranks.h"

// A rank that has something else to do first ends what the others wait for.

namespace muster::test {
namespace {

TEST_CASE("who waits for a rank that restores another group is told so at once, and is in step") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "pp", rank, 3);
    struct Heard {
      std::mutex mutex;
      std::vector<Error> all;
    };
    const auto heard = std::make_shared<Heard>();
    const GroupWatch watch = group.watch([heard](const Error& error) {
      const std::lock_guard lock(heard->mutex);
      heard->all.push_back(error);
    });
    if (rank == 2) {
      await([&] { return held_count(store, "waits") == 3; });  // two rounds' and a receive
      must(group.interrupt("it restores group 'tp'"));
    } else {
      auto received = std::async(std::launch::async,
                                 [&] { return rank == 0 ? group.recv_obj<int>(Rank{2}) : 0; });
      const auto begun = std::chrono::steady_clock::now();
      const Error error = must_fail(group.barrier());
      CHECK(std::chrono::steady_clock::now() - begun < patience().timeout / 2);
      CHECK(error.code == ErrorCode::interrupted);
      CHECK(error.rank_ranges == std::vector<RankRange>{{2, 2}});
      CHECK(error.detail == "it restores group 'tp'");
      CHECK(error.round == 1);
      CHECK(error.happened == Happened::no);
      const auto object = received.get();
      if (rank == 0) CHECK(must_fail(object).code == ErrorCode::interrupted);
    }
    await([&] {
      const std::lock_guard lock(heard->mutex);
      return !heard->all.empty();
    });
    CHECK(must(group.all_gather_obj(rank)) == std::vector<int>{0, 1, 2});
    {
      const std::lock_guard lock(heard->mutex);
      CHECK(heard->all.size() == 1);  // the event and the failure tell of the same
      CHECK(heard->all[0].code == ErrorCode::interrupted);
      CHECK(heard->all[0].group == "pp");
    }
    const GroupWatch later =
        group.watch([](const Error& told) { CHECK(told.code != ErrorCode::interrupted); });
    must(group.barrier());
  });
}

TEST_CASE("a rank that waits itself may interrupt from another thread, and passes what it missed") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    if (rank == 0) {
      CHECK(must(group.broadcast_obj(7, Rank{0})) == 7);
      auto waits = std::async(std::launch::async, [&] { return group.barrier(); });
      await([&] {
        const auto report = must(inspect_group(store, "g"));
        return report.round && report.round->number == 2;
      });
      must(group.interrupt("it has changed its mind"));
      CHECK(must_fail(waits.get()).code == ErrorCode::interrupted);
      must(store.set("interrupted", ""));
    } else {
      must(store.get("interrupted"));
      must(group.interrupt("the same"));  // the barrier that failed, which it has not called
    }
    CHECK(group.counters().rounds == 2);
    CHECK(must(group.all_gather_obj(rank)) == std::vector<int>{0, 1});
    must(group.barrier());
  });
}

TEST_CASE("an interruption is refused where there is nothing to interrupt") {
  auto server = start_server();
  auto store = connect(server);
  auto group = join(store, "g", 0, 1);
  const std::string long_reason(store.limits().key_bytes_max + 1, 'x');
  CHECK(must_fail(group.interrupt(long_reason)).code == ErrorCode::too_large);
  must(group.interrupt(""));
  must(group.barrier());
  must(group.leave());
  CHECK(must_fail(group.interrupt("")).code == ErrorCode::closed);
}

}  // namespace
}  // namespace muster::test
