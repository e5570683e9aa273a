#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <list>
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
  World(int size, const std::string& part, Server server = start_disturbed_server())
      : server_(std::move(server)) {
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

  std::string said(std::size_t rank) { return processes_[rank]->read_line().value_or("nothing"); }
  void expect(std::size_t rank, const std::string& line) {
    CAPTURE(rank);
    CHECK(said(rank) == line);
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
  World world(3, "until_loss", start_disturbed_server(options));
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

// One of three ranks goes missing, is killed or is stopped in each phase of `create`, and before
// the first collective. The phases of a test run at once, each with a server of its own.

/// How far the rank is: it has joined the group, has answered the roll, is connected to one rank,
/// to both, has the communicator.
const std::vector<std::string> within_create{"joined", "answered", "connecting", "connected"};
const std::vector<std::string> all_phases{"joined", "answered", "connecting", "connected", "made"};

struct Outcome {
  std::string told;                    ///< to the others
  std::chrono::milliseconds at_least;  ///< after so long
  std::chrono::milliseconds at_most;
  ServerOptions server;
};

void check_that_others_go_on(World& world, const Outcome& outcome) {
  for (const std::size_t rank : {0U, 2U}) {
    world.expect(rank, outcome.told);
    const std::chrono::milliseconds passed(std::atoi(world.said(rank).c_str()));
    CHECK(passed >= outcome.at_least);
    CHECK(passed < outcome.at_most);
    world.expect(rank, "nothing is left");
  }
  for (const std::size_t rank : {0U, 2U}) {
    world.expect(rank, "sum 2");
    world.expect(rank, "nothing is left");
    world.expect_end(rank);
  }
}

/// `what` befalls rank 1.
void check_phases(const std::string& what, const std::vector<std::string>& phases,
                  const Outcome& outcome) {
  std::list<World> worlds;
  for (const std::string& phase : phases)
    worlds.emplace_back(3, what + "@" + phase, start_disturbed_server(outcome.server));
  auto world = worlds.begin();
  for (const std::string& phase : phases) {
    CAPTURE(phase);
    check_that_others_go_on(*world, outcome);
    if (what == "kill") CHECK((*world)[1].wait().signal == SIGKILL);
    if (what == "stop") {
      (*world)[1].send_signal(SIGCONT);
      const std::string said = world->said(1);  // before or after its session resumes
      CHECK((said == "suspended" || said == "session_expired"));
      world->expect_end(1);
    }
    ++world;
  }
}

TEST_CASE("a rank that is killed in any phase is told of at once, and the others go on") {
  Outcome outcome{"rank_lost 1-1", 0s, 8s, {}};
  outcome.server.grace = 500ms;
  check_phases("kill", all_phases, outcome);
}

TEST_CASE("a rank that is stopped in any phase is told of when its session is over, and fails") {
  Outcome outcome{"rank_lost 1-1", 0s, 12s, {}};
  outcome.server.session_timeout = 5s;
  check_phases("stop", all_phases, outcome);
}

TEST_CASE("a rank that goes missing in any phase is told of at the deadline") {
  check_phases("stay", within_create, {"timed_out 1-1", 1s, 8s, {}});
}

TEST_CASE("groups that overlap reduce each on its own") {
  World world(4, "overlap", start_server());
  for (std::size_t rank = 0; rank < 3; ++rank) world.expect(rank, "18");
  world.expect(3, "6");
  for (std::size_t rank = 0; rank < world.size(); ++rank) world.expect_end(rank);
}

TEST_CASE("another process than before cannot be attached, and harms nothing") {
  World world(3, "exchange", start_server());
  for (std::size_t rank = 0; rank < world.size(); ++rank) {
    world.expect(rank, "mismatch 0-1");
    world.expect(rank, "sum 3");
    world.expect_end(rank);
  }
}

}  // namespace
}  // namespace muster::test
