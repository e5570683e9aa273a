#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "client/failure.h"
#include "gloo/by_hand.h"
#include "gloo/communicator_impl.h"
#include "gloo/machine.h"
#include "muster/inspect.h"
#include "muster/interruptible.h"
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
  // The vote has a tenth of the time: where many share a processor less than half a second may not
  // do.
  for (const Error& error : make_beside(5s, [](auto&) {})) {
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

/// Whether a thread of this process connects, as Gloo's part does.
bool is_connecting() noexcept {
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(thread.path() / "comm");
    std::string name;
    if (std::getline(file, name) && name == "muster-connect") return true;
  }
  return false;
}

/// Of two ranks that with the lower address waits until the other one comes.
constexpr const char* higher_address = "127.0.0.2";

TEST_CASE("who waits for a connection can be interrupted, and tells the others") {
  auto server = test::start_server();
  std::optional<test::Answered> answered;  // lives on while rank 0 lets go
  test::run_ranks(2, [&](int rank) {
    auto store = test::connect(server);
    auto group = test::join(store, "g", rank, 2);
    if (rank == 0) {
      const auto is_asked = [](void* asked) noexcept {
        bool& was_asked = *static_cast<bool*>(asked);
        return !was_asked && (was_asked = is_connecting());  // once: the vote goes its way
      };
      bool was_asked = false;
      const Interruptible interruptible(is_asked, &was_asked, 20ms);
      const auto began = Clock::now();
      CHECK(must_fail(gloo::create(group, test::within(60s))).code == ErrorCode::cancelled);
      CHECK(Clock::now() - began < 20s);
      must(group.barrier());
      return;
    }
    answered = must(test::answer_roll(group, 20s, higher_address));
    must(test::vote(group, 20s));  // in which rank 0 tells its failure
    must(group.barrier());
  });
  CHECK(test::holds_soon([] { return !is_connecting(); }));
}

TEST_CASE("who is interrupted in the vote lets those go that still connect") {
  auto server = test::start_server();
  std::atomic<bool> is_voting = false;
  std::optional<test::Answered> answered;
  test::run_ranks(3, [&](int rank) {
    auto store = test::connect(server);
    auto group = test::join(store, "g", rank, 3);
    if (rank == 2) {
      // With rank 0 it connects, with rank 1 it does not.
      answered = must(test::answer_roll(group, 20s, higher_address));
      must(test::connect_to(*answered, 1));
      test::await([&] {
        const auto report = must(inspect_group(store, "g"));
        return report.round && report.round->called == std::vector<RankRange>{{0, 0}};
      });
      is_voting = true;
      CHECK(must_fail(test::vote(group, 20s)).code == ErrorCode::cancelled);
      must(group.barrier());  // it stays, so that nobody hears of its end instead
      return;
    }
    const auto is_asked = [](void* asked) noexcept {
      return static_cast<std::atomic<bool>*>(asked)->load();
    };
    std::optional<Interruptible> interruptible;
    if (rank == 0) interruptible.emplace(is_asked, &is_voting, 20ms);
    const auto began = Clock::now();
    const Error error = must_fail(gloo::create(group, test::within(60s)));
    interruptible.reset();
    CHECK(error.code == ErrorCode::cancelled);
    CHECK(Clock::now() - began < 15s);
    must(group.barrier());
  });
  CHECK(test::holds_soon([] { return !is_connecting(); }));
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

TEST_CASE("a wait that begins after the interruption does not begin") {
  const auto mesh = must(Mesh::open(must(find_endpoint({}, "127.0.0.1:1")), 0, 2));
  Transport& transport = mesh->transport();
  transport.begin(Clock::now() + 1s);
  char byte = 0;
  const auto before = transport.createUnboundBuffer(&byte, 1);
  transport.interrupt();
  const auto after = transport.createUnboundBuffer(&byte, 1);
  for (const auto* buffer : {&before, &after}) {
    CHECK_THROWS_AS((*buffer)->waitRecv(nullptr, 1s), Interrupted);
    CHECK_THROWS_AS((*buffer)->waitSend(nullptr, 1s), Interrupted);
  }
}

TEST_CASE("under a call that stays inside the connections are cut after the abort timeout") {
  auto server = test::start_server();
  auto store = test::connect(server);
  auto group = test::join(store, "g", 0, 1);
  const Endpoint endpoint = must(find_endpoint({}, "127.0.0.1:1"));
  const auto own = must(Mesh::open(endpoint, 0, 2));
  const auto peer = must(Mesh::open(endpoint, 1, 2));
  auto connected = std::async(std::launch::async, [&] {
    return peer->connect({own->addresses()[1], ""});
  });
  must(own->connect({"", peer->addresses()[0]}));
  must(connected.get());

  gloo::Options options;
  options.abort_timeout = 100ms;
  const auto impl = std::make_shared<Impl>(options, communicator::Membership(group), own);
  const auto inside = impl->gate().enter();
  REQUIRE(inside);
  impl->end(client::failure(ErrorCode::aborted, ""));
  const auto deadline = Clock::now() + 20s;
  peer->transport().begin(deadline);
  char byte = 0;
  const auto buffer = peer->transport().createUnboundBuffer(&byte, 1);
  CHECK_THROWS([&] {
    buffer->recv(0, 7, 0, 1);
    buffer->waitRecv(nullptr, 20s);
  }());
  CHECK(Clock::now() < deadline);
}

}  // namespace
}  // namespace muster::gloo_internal
