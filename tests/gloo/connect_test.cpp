#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "gloo/by_hand.h"
#include "gloo/machine.h"
#include "support/ranks.h"

// A rank that has said where it listens, and does not go on: what Gloo alone would wait for.

namespace muster::gloo_internal {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using test::must;
using test::must_fail;

using Instead = std::function<void(StatelessProcessGroup& group)>;
using Afterwards = std::function<void(const test::Answered& answered, Clock::time_point failed)>;

/// In some worlds at once rank 0 makes a communicator within `timeout`; `instead` is what rank 1
/// does when it has answered the roll, and `afterwards` what it does when rank 0 is done. Which of
/// the two listens is a matter of their ports: both come up.
///
/// returns  what rank 0 was told in each
std::vector<Error> make_beside(Duration timeout, const Instead& instead,
                               const Afterwards& afterwards = {}) {
  constexpr std::size_t world_count = 6;
  std::thread([] {}).join();  // a sanitizer starts one of its own beside the first
  const std::size_t threads = test::thread_count();
  std::vector<test::Answered> answered(world_count);
  std::vector<Error> told(world_count);
  std::vector<Clock::time_point> failed(world_count);
  {
    auto server = test::start_server();
    test::run_ranks(2 * world_count, [&](int number) {
      const auto world = static_cast<std::size_t>(number / 2);
      const int rank = number % 2;
      const std::string name = "g" + std::to_string(world);
      auto store = test::connect(server);
      auto group = test::join(store, name, rank, 2);
      if (rank == 0) {
        told[world] = must_fail(gloo::create(group, test::within(timeout)));
        failed[world] = Clock::now();
        must(store.set(name + " is done", ""));
        return;
      }
      answered[world] = must(test::answer_roll(group, 20s));
      instead(group);
      must(store.get(name + " is done", 20s));
      if (afterwards) afterwards(answered[world], failed[world]);
    });
  }
  // All but Gloo's own thread of each that has answered. Those must not go before: what resets a
  // connection that is being made would end this process.
  CHECK(test::holds_soon([&] { return test::thread_count() <= threads + world_count; }));
  return told;
}

void leave(StatelessProcessGroup& group) { must(group.leave()); }

TEST_CASE("a rank that does not connect is named at the deadline, though Gloo would wait") {
  for (const Error& error : make_beside(1s, [](auto&) {})) {
    CHECK(error.code == ErrorCode::timed_out);
    CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
    CHECK(error.elapsed < 15s);
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
  make_beside(20s, leave, [](const test::Answered& answered, Clock::time_point failed) {
    auto connected = std::async(std::launch::async, [&] { return test::connect_to(answered, 1); });
    // Where it is this side that listens, rank 0 may never have come.
    if (connected.wait_for(300ms) != std::future_status::ready) answered.mesh->give_up();
    const auto result = connected.get();
    const bool is_early = Clock::now() - failed < 150ms;
    // Or it has been there, and gone in order.
    if (!result && is_early)
      CHECK(result.error().detail.find("closed by peer") != std::string::npos);
  });
}

}  // namespace
}  // namespace muster::gloo_internal
