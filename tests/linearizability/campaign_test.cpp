#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "e2e/server/musterd.h"
#include "linearizability/checker.h"
#include "linearizability/recorder.h"
#include "support/frame_proxy.h"
#include "support/ranks.h"
#include "support/scale.h"

// Real clients of a real musterd, whose connections break and stand still, and whose server is
// stopped now and then and killed in the end. What they were answered must fit one order.
//
//     MUSTER_TEST_SCALE=20 meson test -C build/dev stress_linearizability    a million operations

namespace {

using namespace muster;
using namespace std::chrono_literals;
using linear::History;
using Clock = std::chrono::steady_clock;

constexpr int client_count = 8;
constexpr std::size_t proxy_count = 4;
constexpr Duration life = 1500ms;  // of one server
constexpr std::uint64_t operations_wanted = 50'000;
constexpr int void_rounds_max = 50;
constexpr double unknown_share_min = 0.001;  // of all operations, else too few faults have struck

/// Else the round says nothing: a tenth of what two busy processors do. Short runs are those under
/// sanitizers, which are slower.
double operations_per_second_min() {
  return static_cast<double>(
      std::clamp<std::uint64_t>(test::scaled(std::uint64_t{1000}), 200, 1000));
}

struct Round {
  std::map<std::string, History> histories;
  std::uint64_t operations = 0;
  std::uint64_t unknown = 0;
  double seconds = 0;

  double per_second() const { return static_cast<double>(operations) / seconds; }
};

class Chaos {
 public:
  Chaos(test::Musterd& server, std::vector<std::unique_ptr<test::FrameProxy>>& proxies,
        std::uint64_t seed)
      : server_(server), proxies_(proxies), random_(seed) {}

  void run_for(Duration duration) {
    for (const auto end = Clock::now() + duration; Clock::now() < end;) {
      test::let_pass(between(5ms, 60ms));
      strike();
    }
  }

 private:
  Duration between(Duration low, Duration high) {
    const auto span = static_cast<std::uint64_t>((high - low).count());
    return low + Duration(static_cast<Duration::rep>(random_() % span));
  }

  /// What lasts longer than a call may take leaves those that are under way without an answer.
  void strike() {
    test::FrameProxy& proxy = *proxies_[random_() % proxies_.size()];
    switch (random_() % 4) {
      case 0: proxy.cut(); break;
      case 1:
        proxy.pause();
        test::let_pass(between(5ms, 150ms));
        if (random_() % 2 == 0) proxy.cut();  // what waited in it is lost
        proxy.resume();
        break;
      case 2:
        for (const auto& each : proxies_) each->pause();
        test::let_pass(between(60ms, 120ms));
        for (const auto& each : proxies_) {
          if (random_() % 2 == 0) each->cut();
          each->resume();
        }
        break;
      default:
        server_.send_signal(SIGSTOP);
        test::let_pass(between(5ms, 150ms));
        server_.send_signal(SIGCONT);
        break;
    }
  }

  test::Musterd& server_;
  std::vector<std::unique_ptr<test::FrameProxy>>& proxies_;
  std::mt19937_64 random_;
};

Round run_round(std::uint64_t seed) {
  test::Musterd server({"--slack", "20ms", "--log-level", "silent"});
  std::vector<std::unique_ptr<test::FrameProxy>> proxies;
  std::vector<Store> stores;
  for (std::size_t i = 0; i < proxy_count; ++i) {
    proxies.push_back(std::make_unique<test::FrameProxy>(server.address()));
  }
  linear::Keys keys("");
  std::vector<linear::Recorder> recorders;
  for (int client = 0; client < client_count; ++client) {
    const auto index = static_cast<std::size_t>(client);
    stores.push_back(test::connect(proxies[index % proxy_count]->address()));
  }
  for (int client = 0; client < client_count; ++client) {
    const auto index = static_cast<std::size_t>(client);
    recorders.emplace_back(client, stores[index], keys, seed * client_count + index);
  }
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  const auto began = Clock::now();
  for (linear::Recorder& recorder : recorders) {
    threads.emplace_back([&] {
      while (!is_over && recorder.step()) {
      }
    });
  }
  Chaos(server, proxies, seed).run_for(life);
  server.send_signal(SIGKILL);
  const std::chrono::duration<double> took = Clock::now() - began;
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  Round round;
  round.seconds = took.count();
  for (linear::Recorder& recorder : recorders) {
    round.unknown += recorder.unknown_count();
    for (auto& [key, own] : recorder.histories()) {
      History& all = round.histories[key];
      round.operations += own.size();
      all.insert(all.end(), own.begin(), own.end());
    }
  }
  return round;
}

void check(const Round& round) {
  for (const auto& [key, history] : round.histories) {
    if (linear::is_linearizable(history)) continue;
    for (const linear::Operation& operation : history) {
      std::cout << to_string(operation) << '\n';
    }
    FAIL("the answers of key " << key << " fit no order");
  }
}

TEST_CASE("what clients are answered under faults is linearizable") {
  std::uint64_t operations = 0;
  std::uint64_t unknown = 0;
  double seconds = 0;
  int rounds = 0;
  int void_rounds = 0;
  for (std::uint64_t seed = 1; operations < test::scaled(operations_wanted); ++seed) {
    const Round round = run_round(seed);
    check(round);
    if (round.per_second() < operations_per_second_min()) {
      REQUIRE(++void_rounds <= void_rounds_max);
      continue;
    }
    ++rounds;
    operations += round.operations;
    unknown += round.unknown;
    seconds += round.seconds;
  }
  const double share = static_cast<double>(unknown) / static_cast<double>(operations);
  std::cout << operations << " operations of " << client_count << " clients in " << rounds
            << " rounds, " << static_cast<double>(operations) / seconds << " per second; "
            << unknown << " without an answer (" << 100 * share << " %); " << void_rounds
            << " rounds void\n";
  CHECK(share >= unknown_share_min);
}

}  // namespace
