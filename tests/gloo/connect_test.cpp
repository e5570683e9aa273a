#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <string>
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

using Instead = std::function<void(StatelessProcessGroup& group, const test::Answered& answered)>;

/// In some worlds at once rank 0 makes a communicator within `timeout`; `instead` is what rank 1
/// does when it has answered the roll, and `afterwards` what it does when rank 0 is done. Which of
/// the two listens is a matter of their ports: both come up.
///
/// returns  what rank 0 was told in each
std::vector<Error> make_beside(Duration timeout, const Instead& instead,
                               const Instead& afterwards = {}) {
  constexpr std::size_t world_count = 6;
  const std::size_t threads = test::thread_count();
  std::vector<test::Answered> answered(world_count);
  std::vector<Error> told(world_count);
  {
    auto server = test::start_server();
    test::run_ranks(2 * world_count, [&](int number) {
      const auto world = static_cast<std::size_t>(number / 2);
      const int rank = number % 2;
      const std::string name = "g" + std::to_string(world);
      auto store = test::connect(server);
      auto group = test::join(store, name, rank, 2);
      if (rank == 0) {
        told[world] = must_fail(GlooCommunicator::create(group, test::within(timeout)));
        must(store.set(name + " is done", ""));
        return;
      }
      answered[world] = must(test::answer_roll(group, 20s));
      instead(group, answered[world]);
      must(store.get(name + " is done", 20s));
      if (afterwards) afterwards(group, answered[world]);
    });
  }
  // All but Gloo's own thread of each that has answered. Those must not go before: what resets a
  // connection that is being made would end this process.
  CHECK(test::holds_soon([&] { return test::thread_count() <= threads + world_count; }));
  return told;
}

void leave(StatelessProcessGroup& group, const test::Answered&) { must(group.leave()); }

TEST_CASE("a rank that does not connect is named at the deadline, though Gloo would wait") {
  for (const Error& error : make_beside(1s, [](auto&, auto&) {})) {
    CHECK(error.code == ErrorCode::timed_out);
    CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
    CHECK(error.elapsed < 3s);
  }
}

TEST_CASE("a rank that leaves while the others connect lets them go at once") {
  for (const Error& error : make_beside(20s, leave)) {
    CHECK(error.code == ErrorCode::rank_left);
    CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
    CHECK(error.elapsed < 10s);
  }
}

TEST_CASE("a rank that has failed resets nobody who just connects to it") {
  make_beside(20s, leave, [](auto&, const test::Answered& answered) {
    const auto began = Clock::now();
    auto connected = std::async(std::launch::async, [&] { return test::connect_to(answered, 1); });
    // Where it is this side that listens, rank 0 may never have come.
    if (connected.wait_for(300ms) != std::future_status::ready) answered.mesh->give_up();
    const auto result = connected.get();
    if (!result && Clock::now() - began < 50ms) FAIL(result.error().message());
  });
}

}  // namespace
}  // namespace muster::gloo
