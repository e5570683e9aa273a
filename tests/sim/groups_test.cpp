// Ranks of one group pass rounds and hand objects on, through the production protocol and engine,
// while connections break and calls are given up and recovered. Every round has one outcome, every
// stream keeps its order, and nothing is left on the server when all have gone.

#include <deque>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "rank.h"
#include "support/scale.h"
#include "weather.h"

namespace muster::sim {
namespace {

constexpr std::uint32_t world_size = 3;

struct Outcome {
  std::vector<std::string> problems;
  std::uint64_t resumed_count = 0;
  std::uint64_t recovered_count = 0;
};

Outcome outcome_of(std::uint64_t seed) {
  Scheduler scheduler;
  Random random(seed);
  Network network(scheduler, random);
  Server server(scheduler, network, random, core::Options{});
  std::deque<Client> clients;
  std::deque<Rank> ranks;
  const Rank::Plan plan{seed, world_size, 40, std::chrono::seconds(120)};
  for (std::uint32_t rank = 0; rank < world_size; ++rank) {
    Client& client = clients.emplace_back(rank, scheduler, network, server);
    ranks.emplace_back(rank, plan, client, scheduler, random);
  }
  Weather weather(Weather::Kind::rough, scheduler, network, random, clients);
  for (Client& client : clients) client.open();
  for (Rank& rank : ranks) rank.join();
  weather.begin();
  scheduler.run_until(scheduler.now() + std::chrono::seconds(300));
  weather.end();
  scheduler.run_until(scheduler.now() + std::chrono::seconds(20));

  Outcome outcome;
  std::vector<std::string>& problems = outcome.problems;
  for (const Rank& rank : ranks) {
    problems.insert(problems.end(), rank.problems().begin(), rank.problems().end());
    outcome.recovered_count += rank.recovered_count();
    if (!rank.has_left()) problems.push_back("a rank is still there");
  }
  for (Client& client : clients) {
    problems.insert(problems.end(), client.violations().begin(), client.violations().end());
    outcome.resumed_count += client.resumed_count();
    client.close();
  }
  scheduler.run_until(scheduler.now() + std::chrono::seconds(20));
  const core::Counts counts = server.counts();
  const std::uint64_t left = counts.sessions + counts.objects + counts.groups + counts.epochs +
                             counts.rounds + counts.streams + counts.waits + counts.cached_results +
                             counts.timers + counts.memory_bytes;
  if (left != 0) problems.push_back("something is left on the server");
  return outcome;
}

TEST_CASE("rounds and streams stay in step, whatever is cut, given up and recovered") {
  const std::uint64_t count = test::scaled<std::uint64_t>(100);
  std::uint64_t resumed_count = 0;
  std::uint64_t recovered_count = 0;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    const Outcome outcome = outcome_of(seed);
    resumed_count += outcome.resumed_count;
    recovered_count += outcome.recovered_count;
    if (outcome.problems.empty()) continue;
    CAPTURE(seed);
    FAIL_CHECK(outcome.problems.front());
  }
  CHECK(resumed_count > 10 * count);  // otherwise nothing was shown
  CHECK(recovered_count > 10 * count);
}

}  // namespace
}  // namespace muster::sim
