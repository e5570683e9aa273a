#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/job.h"
#include "runtime/shared/new_file.h"
#include "runtime/shared_support.h"
#include "support/process.h"

// Jobs of processes that share, some of which are killed: what others hear, and what remains.

namespace muster::test {
namespace {

class ProcessJob {
 public:
  ProcessJob(int world_size, const std::string& role, const std::string& folder) {
    ServerOptions quick;
    quick.grace = 100ms;
    server_.emplace(start_disturbed_server(quick));
    for (int rank = 0; rank < world_size; ++rank) {
      Process::Options options;
      options.command = {std::getenv("RUNTIME_SHARED_RANK"), role, folder};
      for (const auto& variable : variables_of(rank, world_size, server_->addresses().front()))
        options.environment[variable.first] = variable.second;
      options.take_errors = false;
      ranks.push_back(std::make_unique<Process>(options));
    }
    for (const auto& rank : ranks) REQUIRE(rank->read_line() == "ready");
  }

  std::vector<std::unique_ptr<Process>> ranks;

 private:
  std::optional<Server> server_;
};

/// Its last line, if it has ended by itself.
std::string last_line_of(Process& process) {
  std::string last;
  while (auto line = process.read_line()) last = *line;
  CHECK(process.wait().exit_code == 0);
  return last;
}

/// returns  how many files a sweep has removed
std::size_t check_swept(const std::string& folder) {
  const std::size_t count = runtime::sweep(folder);
  CHECK(leftovers_in(folder).empty());
  return count;
}

/// Kills a rank somewhere in a scope or a workspace.
void kill_one(std::mt19937& random, const std::string& folder) {
  constexpr int world_size = 3;
  ProcessJob job(world_size, "scopes", folder);
  const auto victim = static_cast<std::size_t>(random() % world_size);
  for (auto rounds = 1 + random() % 8; rounds > 0; --rounds)
    REQUIRE(job.ranks[victim]->read_line() == "round");
  // A round takes a few milliseconds: somewhere in it.
  const auto moment = std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 8000);
  while (std::chrono::steady_clock::now() < moment) {
  }
  job.ranks[victim]->send_signal(SIGKILL);
  CHECK(job.ranks[victim]->wait().signal == SIGKILL);
  for (std::size_t rank = 0; rank < world_size; ++rank) {
    if (rank == victim) continue;
    CHECK(last_line_of(*job.ranks[rank]) == "ended rank_lost rank " + std::to_string(victim));
  }
}

TEST_CASE("processes that are killed at any moment: the others get errors, and a sweep cleans up") {
  const char* const count_text = std::getenv("KILLS");
  const char* const seed_text = std::getenv("SEED");
  const int count = count_text != nullptr ? std::atoi(count_text) : 10;
  const auto seed =
      seed_text != nullptr ? static_cast<unsigned>(std::atoll(seed_text)) : std::random_device()();
  MESSAGE("SEED=", seed, " KILLS=", count);
  std::mt19937 random(seed);
  std::size_t swept = 0;
  for (int number = 0; number < count; ++number) {
    CAPTURE(number);
    const OwnFolder folder;
    kill_one(random, folder.path());
    swept += check_swept(folder.path()) + check_swept("/dev/shm");
    for (const std::string& name : entries_of(folder.path())) CHECK(name.rfind("rank_", 0) == 0);
  }
  MESSAGE("files that were left, and swept: ", swept);
}

TEST_CASE("M3: what a killed writer leaves, a fresh run removes") {
  const OwnFolder folder;
  {
    ProcessJob job(2, "scopes", folder.path());
    REQUIRE(job.ranks[1]->read_line() == "round");
    for (const auto& rank : job.ranks) rank->send_signal(SIGKILL);
    for (const auto& rank : job.ranks) rank->wait();
  }
  // As of a writer that is killed before its first rank has its part.
  const pid_t writer = ::fork();
  if (writer == 0) {
    new runtime::NewFile(*runtime::NewFile::create("/dev/shm", "gather"));
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(writer, &status, 0) == writer);
  ProcessJob job(2, "once", folder.path());
  CHECK(last_line_of(*job.ranks[0]) == "ok 2");
  CHECK(last_line_of(*job.ranks[1]) == "ok 0");
  CHECK(leftovers_in("/dev/shm").empty());
}

TEST_CASE("M6: a shared memory that is full is an error on all ranks, and no SIGBUS") {
  Process::Options options;
  options.command = {std::getenv("RUNTIME_SHARED_RANK"), "full", ""};
  options.take_errors = false;
  Process process(options);
  for (int rank = 0; rank < 2; ++rank) {
    const auto line = process.read_line();
    REQUIRE(line.has_value());
    if (line->rfind("skipped", 0) == 0) {
      MESSAGE("a shared memory of its own takes root: ", *line);
      return;
    }
    CAPTURE(*line);
    CHECK(line->find("resource_exhausted;ok;") != std::string::npos);
    CHECK(line->find("--shm-size") != std::string::npos);
    CHECK(line->find("rank 1") != std::string::npos);
  }
  CHECK(process.read_line() == "ok;resource_exhausted;kept;resource_exhausted;rank_0.state");
  CHECK(process.wait().exit_code == 0);
}

}  // namespace
}  // namespace muster::test
