#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/process.h"
#include "support/server.h"

// Ranks that are processes, and what befalls those.

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// All ranks of a world. The end of a test kills those that still run.
class World {
 public:
  World(int size, const std::string& part, ServerOptions options = {})
      : server_(start_server(std::move(options))) {
    for (int rank = 0; rank < size; ++rank) {
      Process::Options process;
      process.command = {std::getenv("GLOO_RANK"), server_.addresses().front(),
                         std::to_string(rank), std::to_string(size), part};
      process.take_errors = false;
      processes_.push_back(std::make_unique<Process>(process));
    }
  }

  Process& operator[](std::size_t rank) { return *processes_[rank]; }
  std::size_t size() const { return processes_.size(); }

  void expect(std::size_t rank, const std::string& line) {
    CAPTURE(rank);
    CHECK(processes_[rank]->read_line().value_or("nothing") == line);
  }
  void expect_end(std::size_t rank) {
    CAPTURE(rank);
    CHECK(processes_[rank]->wait().exit_code == 0);
  }

 private:
  Server server_;
  std::vector<std::unique_ptr<Process>> processes_;
};

TEST_CASE("a rank that is killed is named at once by all, who go on without it") {
  World world(4, "until_loss");
  for (std::size_t rank = 0; rank < world.size(); ++rank) world.expect(rank, "reduces");
  const std::string pid = std::to_string(world[2].pid());
  const auto began = Clock::now();
  world[2].send_signal(SIGKILL);
  for (const std::size_t rank : {0U, 1U, 3U}) {
    world.expect(rank, "rank_lost 2-2");
    world.expect(rank, pid);
  }
  CHECK(Clock::now() - began < 10s);  // the server waits for it for 2 s
  for (const std::size_t rank : {0U, 1U, 3U}) {
    world.expect(rank, "sum 3");
    world.expect_end(rank);
  }
}

TEST_CASE("a rank that stands still is lost when the server says so") {
  ServerOptions options;
  options.session_timeout = 5s;
  World world(3, "until_loss", options);
  for (std::size_t rank = 0; rank < world.size(); ++rank) world.expect(rank, "reduces");
  const std::string pid = std::to_string(world[1].pid());
  const auto began = Clock::now();
  world[1].stop();
  for (const std::size_t rank : {0U, 2U}) {
    world.expect(rank, "rank_lost 1-1");
    world.expect(rank, pid);
  }
  CHECK(Clock::now() - began < 10s);
  for (const std::size_t rank : {0U, 2U}) {
    world.expect(rank, "sum 2");
    world.expect_end(rank);
  }
}

TEST_CASE("a rank that stands still lets nobody wait beyond the deadline") {
  World world(2, "until_late");
  for (std::size_t rank = 0; rank < world.size(); ++rank) world.expect(rank, "reduces");
  const auto began = Clock::now();
  world[1].stop();
  world.expect(0, "timed_out");
  CHECK(Clock::now() - began < 5s);
  world.expect_end(0);
}

TEST_CASE("groups that overlap reduce each on its own") {
  World world(4, "overlap");
  for (std::size_t rank = 0; rank < 3; ++rank) world.expect(rank, "18");
  world.expect(3, "6");
  for (std::size_t rank = 0; rank < world.size(); ++rank) world.expect_end(rank);
}

TEST_CASE("another process than before cannot be attached, and harms nothing") {
  World world(3, "exchange");
  for (std::size_t rank = 0; rank < world.size(); ++rank) {
    world.expect(rank, "mismatch 0-1");
    world.expect(rank, "sum 3");
    world.expect_end(rank);
  }
}

}  // namespace
}  // namespace muster::test
