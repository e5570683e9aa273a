// Plants the bugs that the simulation has to find, one by one, and looks for the first seed that
// finds each. It is built in the tree that tests/zoo/plant.py writes; `tools/dev zoo` runs it.
//
// `usage` below has its options.

#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/planted.h"
#include "subject.h"

namespace muster::sim {
namespace {

using base::Bug;

constexpr const char* usage =
    "sim_zoo                                   all, each within its budget of seeds\n"
    "sim_zoo --bug NAME [--seed N [--trace]]   one; a seed as a text of what happens\n";

/// A story that never ends has found nothing: it may only have become slow.
constexpr unsigned budget_s = 240;

/// The first problem of a seed; empty: none. What a bug makes unreadable is one, too.
std::string problem_of(std::uint64_t seed, const Subject& subject, bool is_traced) {
  try {
    const Outcome outcome = subject.run(seed, is_traced);
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
Catch hunt(Bug bug, const Subject& subject) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(budget_s);
    base::planted = bug;
    Catch caught;
    for (std::uint64_t seed = 1; seed <= subject.seeds_for_bug && caught.why[0] == '\0'; ++seed) {
      caught.seed = seed;
      if (write(ends[1], &caught, sizeof caught) < 0) _exit(1);  // in case that it ends here
      const std::string problem = problem_of(seed, subject, false);
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
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    std::printf("seed %" PRIu64 " has no end within %u s\n", last.seed, budget_s);
    last.why[0] = '\0';
  } else if (WIFSIGNALED(status)) {
    std::snprintf(last.why, sizeof last.why, "the process ends by signal %d", WTERMSIG(status));
  }
  return last;
}

int run_zoo() {
  int planted = 0;
  int escaped = 0;
  for (const base::PlantedBug& entry : base::planted_bugs) {
    const Subject* const subject = subject_of(entry.subject);
    if (subject == nullptr) continue;
    ++planted;
    const Catch caught = hunt(entry.bug, *subject);
    const bool is_caught = caught.why[0] != '\0';
    std::printf("%-36s %4" PRIu64 "  %s\n", entry.name, caught.seed,
                is_caught ? caught.why : "NOT CAUGHT");
    std::fflush(stdout);
    if (!is_caught) ++escaped;
  }
  bool is_well = true;
  for (const Subject& subject : subjects()) {
    const Catch wrongly = hunt(Bug::none, subject);
    if (wrongly.why[0] == '\0') continue;
    is_well = false;
    std::printf("without a bug seed %" PRIu64 " fails: %s\n", wrongly.seed, wrongly.why);
  }
  std::printf("%d bugs, %d not caught\n", planted, escaped);
  return escaped == 0 && is_well ? 0 : 1;
}

int run_one(std::string_view name, std::uint64_t seed, bool is_traced) {
  for (const base::PlantedBug& entry : base::planted_bugs) {
    if (entry.name != name) continue;
    // What no simulation has to find may be looked for all the same.
    const Subject* const its = subject_of(entry.subject);
    const Subject& subject = its != nullptr ? *its : subjects().front();
    if (seed == 0) {
      const Catch caught = hunt(entry.bug, subject);
      std::printf("seed %" PRIu64 ": %s\n", caught.seed, caught.why);
      return caught.why[0] != '\0' ? 0 : 1;
    }
    base::planted = entry.bug;
    const std::string problem = problem_of(seed, subject, is_traced);
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
  for (int index = 1; index < count; ++index) {
    const std::string_view name = arguments[index];
    if (name == "--trace") {
      is_traced = true;
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
  return run_zoo();
}

}  // namespace
}  // namespace muster::sim

int main(int count, char** arguments) { return muster::sim::run(count, arguments); }
