// Runs seeds, one story each, and says which of them break a promise.
//
//   simulate --seed N [--trace]        one, as a text of what happens
//   simulate --seeds FIRST-LAST [--jobs N] [--bug NAME]

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "support/scale.h"
#include "world.h"

namespace muster::sim {
namespace {

struct Command {
  std::uint64_t first = 1;
  std::uint64_t last = 100;
  std::uint64_t jobs = 1;
  bool is_traced = false;
};

/// What one job has found; goes through a pipe.
struct Sum {
  std::uint64_t seeds = 0;
  std::uint64_t failed = 0;
  std::uint64_t calls = 0;
  std::uint64_t rounds = 0;
  std::uint64_t epochs = 0;
  double hours = 0;
};

void run_one(std::uint64_t seed, const Command& command, Sum& sum) {
  World world(seed, command.is_traced);
  Outcome outcome;
  try {
    outcome = world.run();
  } catch (const std::exception& error) {
    outcome.problems.push_back(error.what());
  }
  ++sum.seeds;
  sum.calls += outcome.calls;
  sum.rounds += outcome.rounds;
  sum.epochs += outcome.epochs;
  sum.hours += static_cast<double>(outcome.passed.count()) / 3.6e9;
  if (command.is_traced) std::printf("hash %016" PRIx64 "\n", outcome.hash);
  if (outcome.problems.empty()) return;
  ++sum.failed;
  std::printf("seed %" PRIu64 ": %s\n    simulate --seed %" PRIu64 " --trace\n", seed,
              outcome.problems.front().c_str(), seed);
  std::fflush(stdout);
}

/// The same seed must tell the same story.
bool is_deterministic(std::uint64_t seed) {
  return World(seed, false).run().hash == World(seed, false).run().hash;
}

Sum run_job(std::uint64_t job, const Command& command) {
  Sum sum;
  for (std::uint64_t seed = command.first + job; seed <= command.last; seed += command.jobs) {
    run_one(seed, command, sum);
  }
  return sum;
}

Sum run_all(const Command& command) {
  if (command.jobs == 1) return run_job(0, command);
  std::vector<int> pipes;
  for (std::uint64_t job = 0; job < command.jobs; ++job) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    std::fflush(stdout);
    if (fork() == 0) {
      const Sum sum = run_job(job, command);
      const bool is_told = write(ends[1], &sum, sizeof sum) == sizeof sum;
      std::fflush(stdout);
      _exit(is_told ? 0 : 1);
    }
    close(ends[1]);
    pipes.push_back(ends[0]);
  }
  Sum all;
  for (const int end : pipes) {
    Sum sum;
    if (read(end, &sum, sizeof sum) != sizeof sum) ++all.failed;  // it died
    close(end);
    all.seeds += sum.seeds;
    all.failed += sum.failed;
    all.calls += sum.calls;
    all.rounds += sum.rounds;
    all.epochs += sum.epochs;
    all.hours += sum.hours;
  }
  while (wait(nullptr) > 0) {
  }
  return all;
}

bool read_range(std::string_view text, Command& command) {
  char* end = nullptr;
  const std::string owned(text);
  command.first = command.last = std::strtoull(owned.c_str(), &end, 10);
  if (*end == '-') command.last = std::strtoull(end + 1, &end, 10);
  return *end == '\0' && command.first <= command.last;
}

int run(int count, char** arguments) {
  Command command;
  bool is_scaled = false;
  for (int index = 1; index < count; ++index) {
    const std::string_view name = arguments[index];
    const char* const value = index + 1 < count ? arguments[index + 1] : "";
    if (name == "--trace") {
      command.is_traced = true;
    } else if ((name == "--seed" || name == "--seeds") && read_range(value, command)) {
      ++index;
    } else if (name == "--jobs" && std::atoi(value) > 0) {
      command.jobs = static_cast<std::uint64_t>(std::atoi(value));
      ++index;
    } else if (name == "--scaled") {
      is_scaled = true;
    } else {
      std::fprintf(stderr, "simulate: what is %s?\n", arguments[index]);
      return 2;
    }
  }
  if (is_scaled) command.last = command.first + test::scaled(command.last - command.first + 1) - 1;
  const auto began = std::chrono::steady_clock::now();
  const Sum sum = run_all(command);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::printf("%" PRIu64 " seeds, %" PRIu64 " failed, %" PRIu64 " calls, %" PRIu64
              " rounds, %" PRIu64 " epochs, %.1f virtual hours, %.1f seeds per second\n",
              sum.seeds, sum.failed, sum.calls, sum.rounds, sum.epochs, sum.hours,
              static_cast<double>(sum.seeds) / took.count());
  for (std::uint64_t seed = command.first; seed <= command.last && seed < command.first + 10;
       ++seed) {
    if (command.is_traced || is_deterministic(seed)) continue;
    std::printf("seed %" PRIu64 " does not repeat itself\n", seed);
    return 1;
  }
  return sum.failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::sim

int main(int count, char** arguments) { return muster::sim::run(count, arguments); }
