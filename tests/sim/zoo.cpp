// Plants the bugs of bugs.cpp one by one and looks for the first seed that finds each.
//
// `usage` below has its options.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "bugs.h"
#include "support/scale.h"
#include "world.h"

namespace muster::sim {
namespace {

constexpr const char* usage =
    "sim_zoo                                   all, each within its budget of seeds\n"
    "sim_zoo --sample                          some: MUSTER_TEST_SCALE says how many, and\n"
    "                                          MUSTER_TEST_SEED which\n"
    "sim_zoo --bug NAME [--seed N [--trace]]   one; a seed as a text of what happens\n";

constexpr std::uint64_t budget = 500;
/// A bug may also make a seed run for ever. That counts only for those of which it is known: a
/// story that has become slow finds nothing.
constexpr unsigned budget_s = 240;

/// The first problem of a seed; empty: none. What a bug makes unreadable is one, too.
std::string problem_of(std::uint64_t seed, bool is_traced) {
  World world(seed, is_traced);
  try {
    const Outcome outcome = world.run();
    return outcome.problems.empty() ? "" : outcome.problems.front();
  } catch (const std::exception& error) {
    return error.what();
  }
}

struct Catch {
  std::uint64_t seed = 0;  ///< 0: none
  char why[200] = {};
};

/// In a process of its own, since a bug may end it.
Catch hunt(const PlantedBug& planted, std::uint64_t seeds) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(budget_s);
    base::planted = planted.bug;
    Catch caught;
    for (std::uint64_t seed = 1; seed <= seeds && caught.why[0] == '\0'; ++seed) {
      caught.seed = seed;
      if (write(ends[1], &caught, sizeof caught) < 0) _exit(1);  // in case that it ends here
      const std::string problem = problem_of(seed, false);
      std::snprintf(caught.why, sizeof caught.why, "%s", problem.c_str());
    }
    if (caught.why[0] == '\0') caught.seed = 0;
    _exit(write(ends[1], &caught, sizeof caught) == sizeof caught ? 0 : 1);
  }
  close(ends[1]);
  Catch last;
  while (read(ends[0], &last, sizeof last) == sizeof last) {
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM && !planted.hangs) {
    std::printf("seed %" PRIu64 " has no end within %u s\n", last.seed, budget_s);
    last.why[0] = '\0';
  } else if (WIFSIGNALED(status)) {
    std::snprintf(last.why, sizeof last.why, "the process ends by signal %d", WTERMSIG(status));
  }
  return last;
}

using Bugs = std::vector<PlantedBug>;

Bugs all_bugs() { return {planted_bugs().begin(), planted_bugs().end()}; }

/// Some of them, in their order.
Bugs sampled_bugs() {
  const char* const seed = std::getenv("MUSTER_TEST_SEED");
  std::mt19937_64 dice(seed != nullptr ? std::strtoull(seed, nullptr, 10) : 0);
  const Bugs all = all_bugs();
  const std::size_t count = std::min(test::scaled(all.size()), all.size());
  Bugs sample;
  std::sample(all.begin(), all.end(), std::back_inserter(sample), count, dice);
  return sample;
}

int run_zoo(const Bugs& bugs) {
  int escaped = 0;
  for (const PlantedBug& planted : bugs) {
    const Catch caught = hunt(planted, budget);
    const bool is_caught = caught.why[0] != '\0';
    std::printf("%-32.*s %4" PRIu64 "  %s\n", static_cast<int>(planted.name.size()),
                planted.name.data(), caught.seed, is_caught ? caught.why : "NOT CAUGHT");
    std::fflush(stdout);
    if (!is_caught) ++escaped;
  }
  const Catch wrongly = hunt({base::Bug::none, "none", "", true}, budget);
  if (wrongly.why[0] != '\0') {
    std::printf("without a bug seed %" PRIu64 " fails: %s\n", wrongly.seed, wrongly.why);
  }
  std::printf("%zu of %zu bugs, %d not caught\n", bugs.size(), planted_bugs().size(), escaped);
  return escaped == 0 && wrongly.why[0] == '\0' ? 0 : 1;
}

int run_one(std::string_view name, std::uint64_t seed, bool is_traced) {
  for (const PlantedBug& planted : planted_bugs()) {
    if (planted.name != name) continue;
    std::printf("%s\n", std::string(planted.what).c_str());
    if (seed == 0) {
      const Catch caught = hunt(planted, budget);
      std::printf("seed %" PRIu64 ": %s\n", caught.seed, caught.why);
      return caught.why[0] != '\0' ? 0 : 1;
    }
    base::planted = planted.bug;
    const std::string problem = problem_of(seed, is_traced);
    std::printf("seed %" PRIu64 ": %s\n", seed, problem.c_str());
    return problem.empty() ? 1 : 0;
  }
  std::fprintf(stderr, "sim_zoo: no such bug\n");
  return 2;
}

int run(int count, char** arguments) {
  std::string_view bug;
  std::uint64_t seed = 0;
  bool is_traced = false;
  bool is_sample = false;
  for (int index = 1; index < count; ++index) {
    const std::string_view name = arguments[index];
    if (name == "--trace") {
      is_traced = true;
    } else if (name == "--sample") {
      is_sample = true;
    } else if (name == "--bug" && index + 1 < count) {
      bug = arguments[++index];
    } else if (name == "--seed" && index + 1 < count) {
      seed = std::strtoull(arguments[++index], nullptr, 10);
    } else if (name == "--help") {
      std::fputs(usage, stdout);
      return 0;
    } else {
      std::fprintf(stderr, "sim_zoo: what is %s?\n%s", arguments[index], usage);
      return 2;
    }
  }
  if (!bug.empty()) return run_one(bug, seed, is_traced);
  return run_zoo(is_sample ? sampled_bugs() : all_bugs());
}

}  // namespace
}  // namespace muster::sim

int main(int count, char** arguments) { return muster::sim::run(count, arguments); }
