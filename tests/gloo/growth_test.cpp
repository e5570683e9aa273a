#include <functional>
#include <future>
#include <string>

#include <doctest/doctest.h>

#include "gloo/machine.h"
#include "muster/gloo_communicator.h"
#include "support/ranks.h"
#include "support/scale.h"

// What making and ending communicators again and again leaves behind.

namespace muster::test {
namespace {

/// Does it on two ranks, again and again; threads and descriptors are as many as at first.
void check_growth(int times, const std::function<void(StatelessProcessGroup&, int turn)>& turn) {
  auto server = start_server();
  std::size_t threads = 0;
  std::size_t descriptors = 0;
  const auto part = [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    // A store starts a thread for handlers when it first has one to run.
    std::promise<void> handled;
    store.set_async("handled", "", {}, 20s, [&](const auto&) { handled.set_value(); });
    handled.get_future().wait();
    turn(group, -1);
    const auto compare = [&](const std::string& when, const std::function<void()>& look) {
      must(group.barrier(20s));
      if (rank == 0) look();
      must(store.add(when, 1));
      await([&] { return must(store.get(when)) == "2"; });
    };
    compare("first", [&] {
      // What the first turn has left ends by itself.
      await([&] {
        threads = thread_count();
        descriptors = descriptor_count();
        let_pass(100ms);
        return threads == thread_count() && descriptors == descriptor_count();
      });
    });
    for (int number = 0; number < times; ++number) turn(group, number);
    compare("last", [&] {
      CHECK(holds_soon(
          [&] { return thread_count() <= threads && descriptor_count() <= descriptors; }));
      CHECK(thread_count() <= threads);
      CHECK(descriptor_count() <= descriptors);
    });
  };
  run_ranks(2, part);
}

TEST_CASE("communicators that are made and closed leave nothing") {
  check_growth(scaled(100), [](StatelessProcessGroup& group, int turn) {
    auto communicator = must(GlooCommunicator::create(group, within(20s)));
    CHECK(must(sum_of(communicator, 1)) == 2);
    if (turn % 2 == 0) must(communicator.close());  // else aborted
  });
}

TEST_CASE("communicators that could not be made leave nothing") {
  check_growth(scaled(50), [](StatelessProcessGroup& group, int) {
    GlooOptions options = within(20s);
    if (group.rank() == 1) options.interface = "eth77";
    CHECK(must_fail(GlooCommunicator::create(group, options)).code == ErrorCode::invalid_argument);
  });
}

}  // namespace
}  // namespace muster::test
