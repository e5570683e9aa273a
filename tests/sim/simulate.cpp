// Runs seeds, one story each, and says which of them break a promise.
//
// `usage` below has its options. Bugs are planted by sim_zoo, not here.

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "subject.h"
#include "support/scale.h"

namespace muster::sim {
namespace {

constexpr const char* usage =
    "simulate --seed N [--trace]                one story, as a text of what happens\n"
    "simulate --seeds FIRST-LAST [--jobs N]     many, N at once\n"
    "  --of SUBJECT   server (the default), with its clients; or job, with its launchers\n"
    "  --scaled       as many of them as MUSTER_TEST_SCALE says\n"
    "sim_zoo has bugs to plant.\n";

/// Of the clock on the wall, for one story. Most take milliseconds.
constexpr unsigned story_s = 120;

struct Command {
  std::uint64_t first = 1;
  std::uint64_t last = 100;
  std::uint64_t jobs = 1;
  bool is_traced = false;
  const Subject* subject = &subjects().front();
};

/// What one job has found.
struct Sum {
  std::uint64_t seeds = 0;
  std::uint64_t failed = 0;
  std::array<std::uint64_t, counts_max> counts{};
  double hours = 0;
};

void add(std::array<std::uint64_t, counts_max>& all,
         const std::array<std::uint64_t, counts_max>& more) {
  for (std::size_t index = 0; index < counts_max; ++index) all[index] += more[index];
}

void print_how_to_repeat(std::uint64_t seed, const Command& command) {
  const bool is_first = command.subject == &subjects().front();
  const std::string of = is_first ? "" : "--of " + std::string(command.subject->name) + " ";
  std::printf("    simulate %s--seed %" PRIu64 " --trace\n", of.c_str(), seed);
}

void run_one(std::uint64_t seed, const Command& command, Sum& sum) {
  Outcome outcome;
  try {
    outcome = command.subject->run(seed, command.is_traced);
  } catch (const std::exception& error) {
    outcome.problems.push_back(error.what());
  }
  ++sum.seeds;
  add(sum.counts, outcome.counts);
  sum.hours += static_cast<double>(outcome.passed.count()) / 3.6e9;
  if (command.is_traced) std::printf("hash %016" PRIx64 "\n", outcome.hash);
  if (outcome.problems.empty()) return;
  ++sum.failed;
  std::printf("seed %" PRIu64 ": %s\n", seed, outcome.problems.front().c_str());
  print_how_to_repeat(seed, command);
  std::fflush(stdout);
}

/// The same seed must tell the same story.
bool is_deterministic(std::uint64_t seed, const Subject& subject) {
  return subject.run(seed, false).hash == subject.run(seed, false).hash;
}

void add(Sum& all, const Sum& sum) {
  all.seeds += sum.seeds;
  all.failed += sum.failed;
  add(all.counts, sum.counts);
  all.hours += sum.hours;
}

/// What goes through the pipe of a job: before each story, what was found so far.
struct Note {
  std::uint64_t seed = 0;  ///< that comes next; 0: all are done
  Sum sum;
};

/// A process that runs every so-manieth seed, and is begun again behind one that ends it.
struct Job {
  std::uint64_t next = 0;
  pid_t process = 0;
  int pipe = -1;
  Note last;
};

void tell(int pipe, const Note& note) {
  if (write(pipe, &note, sizeof note) != sizeof note) _exit(1);
}

void begin(Job& job, const Command& command) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  std::fflush(stdout);
  job.last = {job.next, {}};
  job.process = fork();
  if (job.process == 0) {
    close(ends[0]);
    Sum sum;
    for (std::uint64_t seed = job.next; seed <= command.last; seed += command.jobs) {
      tell(ends[1], {seed, sum});
      alarm(story_s);
      run_one(seed, command, sum);
    }
    alarm(0);
    std::fflush(stdout);
    tell(ends[1], {0, sum});
    _exit(0);
  }
  close(ends[1]);
  job.pipe = ends[0];
}

/// The job's process is over: in order, or in the midst of a story.
void end(Job& job, const Command& command, Sum& all) {
  close(std::exchange(job.pipe, -1));
  int status = 0;
  waitpid(job.process, &status, 0);
  add(all, job.last.sum);
  const std::uint64_t seed = job.last.seed;
  if (seed == 0) return;
  ++all.seeds;
  ++all.failed;
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (signal == SIGALRM) {
    std::printf("seed %" PRIu64 ": it does not end within %u s", seed, story_s);
  } else {
    std::printf("seed %" PRIu64 ": the process ends by %s %d", seed,
                signal != 0 ? "signal" : "status", signal != 0 ? signal : WEXITSTATUS(status));
  }
  std::printf("\n");
  print_how_to_repeat(seed, command);
  job.next = seed + command.jobs;
  if (job.next <= command.last) begin(job, command);
}

Sum run_all(const Command& command) {
  Sum all;
  if (command.first == command.last) {  // here, where a debugger finds it
    run_one(command.first, command, all);
    return all;
  }
  std::vector<Job> jobs;
  for (std::uint64_t job = 0; job < command.jobs && command.first + job <= command.last; ++job) {
    jobs.push_back({command.first + job, 0, -1, {}});
    begin(jobs.back(), command);
  }
  for (;;) {
    std::vector<pollfd> pipes;
    for (const Job& job : jobs) pipes.push_back({job.pipe, POLLIN, 0});
    if (std::all_of(jobs.begin(), jobs.end(), [](const Job& job) { return job.pipe < 0; })) break;
    if (poll(pipes.data(), pipes.size(), -1) < 0) continue;
    for (std::size_t index = 0; index < jobs.size(); ++index) {
      if (pipes[index].revents == 0) continue;
      Note note;
      if (read(jobs[index].pipe, &note, sizeof note) == sizeof note) {
        jobs[index].last = note;
      } else {
        end(jobs[index], command, all);
      }
    }
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

/// The command, or why there is none: the status to end with.
std::optional<int> read_arguments(int count, char** arguments, Command& command) {
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
    } else if (name == "--of" && subject_of(value) != nullptr) {
      command.subject = subject_of(value);
      ++index;
    } else if (name == "--scaled") {
      is_scaled = true;
    } else if (name == "--help") {
      std::fputs(usage, stdout);
      return 0;
    } else {
      std::fprintf(stderr, "simulate: what is %s?\n%s", arguments[index], usage);
      return 2;
    }
  }
  if (is_scaled) command.last = command.first + test::scaled(command.last - command.first + 1) - 1;
  return std::nullopt;
}

void print(const Sum& sum, const Subject& subject) {
  const bool is_list = subject.counts.size() > 10;
  std::printf("%" PRIu64 " seeds, %" PRIu64 " failed", sum.seeds, sum.failed);
  for (std::size_t index = 0; index < subject.counts.size(); ++index) {
    if (is_list && sum.seeds == 1) continue;
    std::printf("%s%" PRIu64 " %s", is_list ? "\n  " : ", ", sum.counts[index],
                subject.counts[index]);
  }
  std::printf("%s%.1f virtual hours", is_list ? "\n" : ", ", sum.hours);
}

/// Whether the seeds have reached all that they are to reach, if they are enough for that.
bool do_cover(const Sum& sum, const Subject& subject) {
  if (subject.covering == 0 || sum.seeds < subject.covering) return true;
  bool is_reached = true;
  for (std::size_t index = 0; index < subject.counts.size(); ++index) {
    if (sum.counts[index] != 0) continue;
    std::printf("never reached: %s\n", subject.counts[index]);
    is_reached = false;
  }
  return is_reached;
}

int run(int count, char** arguments) {
  Command command;
  if (const auto status = read_arguments(count, arguments, command)) return *status;
  const auto began = std::chrono::steady_clock::now();
  const Sum sum = run_all(command);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  print(sum, *command.subject);
  // A trace is the same bytes whenever it is told.
  if (!command.is_traced) {
    std::printf(", %.1f seeds per second", static_cast<double>(sum.seeds) / took.count());
  }
  std::printf("\n");
  if (command.is_traced || sum.failed != 0) return sum.failed == 0 ? 0 : 1;
  if (!do_cover(sum, *command.subject)) return 1;
  for (std::uint64_t seed = command.first; seed <= command.last && seed < command.first + 10;
       ++seed) {
    if (is_deterministic(seed, *command.subject)) continue;
    std::printf("seed %" PRIu64 " does not repeat itself\n", seed);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace muster::sim

int main(int count, char** arguments) { return muster::sim::run(count, arguments); }
