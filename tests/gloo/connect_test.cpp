#include <chrono>
#include <functional>
#include <vector>

#include <doctest/doctest.h>

#include "gloo/by_hand.h"
#include "gloo/machine.h"
#include "support/ranks.h"

// A rank that has said where it listens, and does not go on: what Gloo alone would wait for.

namespace muster::gloo {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using test::must;
using test::must_fail;

/// Rank 0 makes a communicator within `timeout`; `instead` is what rank 1 does.
///
/// returns  what rank 0 was told
Error make_beside(Duration timeout, const std::function<void(StatelessProcessGroup&)>& instead) {
  auto server = test::start_server();
  Error told;
  test::run_ranks(2, [&](int rank) {
    auto store = test::connect(server);
    auto group = test::join(store, "g", rank, 2);
    if (rank == 1) {
      const auto answered = must(test::answer_roll(group, 20s));
      instead(group);
      must(store.get("rank 0 is done", 20s));
      return;
    }
    told = must_fail(GlooCommunicator::create(group, test::within(timeout)));
    must(store.set("rank 0 is done", ""));
  });
  return told;
}

TEST_CASE("a rank that does not connect is named at the deadline, though Gloo would wait") {
  // Which of two ranks listens is a matter of their ports: both come up in some of the turns.
  for (int turn = 0; turn < 6; ++turn) {
    const auto began = Clock::now();
    const Error error = make_beside(1s, [](StatelessProcessGroup&) {});
    CHECK(error.code == ErrorCode::timed_out);
    CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
    CHECK(Clock::now() - began < 3s);
  }
}

TEST_CASE("a rank that leaves while the others connect lets them go at once") {
  for (int turn = 0; turn < 6; ++turn) {
    const auto began = Clock::now();
    const Error error = make_beside(20s, [](StatelessProcessGroup& group) { must(group.leave()); });
    CHECK(error.code == ErrorCode::rank_left);
    CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
    CHECK(Clock::now() - began < 10s);
  }
}

TEST_CASE("what was given up while it connected leaves no thread") {
  const std::size_t threads = test::thread_count();
  for (int turn = 0; turn < 10; ++turn) make_beside(300ms, [](StatelessProcessGroup&) {});
  CHECK(test::holds_soon([&] { return test::thread_count() <= threads; }));
}

}  // namespace
}  // namespace muster::gloo
